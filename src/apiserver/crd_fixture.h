// For tests: definitions of custom kinds, one small and some of the shapes that batch and machine learning projects use.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "json/parse.h"
#include "json/value.h"
#include "json/yaml.h"

namespace tessera::apiserver {

inline json::Value yaml_of(std::string_view text) {
  auto value = json::parse_yaml(text, {});
  EXPECT_TRUE(value) << (value ? "" : value.error().message);
  return value ? *value : json::Value();
}

inline json::Value widget_definition() {
  return yaml_of(R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    selectableFields: [{jsonPath: .spec.color}]
    additionalPrinterColumns: [{name: Color, type: string, jsonPath: .spec.color}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              color: {type: string, enum: [red, green, blue]}
              size: {type: integer, minimum: 1, maximum: 10, default: 3}
              replicas: {type: integer, format: int32}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, count: {type: integer}}
          status:
            type: object
            properties: {replicas: {type: integer}, phase: {type: string}}
)");
}

inline json::Value widget(std::string_view name, std::string_view spec) {
  json::Value out = json::Value::object({{"apiVersion", "example.com/v1"}, {"kind", "Widget"}});
  out.ref("metadata") = json::Value::object({{"name", name}, {"namespace", "default"}});
  out.set("spec", *json::parse(spec));
  return out;
}

// A group of pods that start together: columns with filters and short names, a pod template that is kept whole.
inline constexpr const char* kGangJobDefinition = R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gangjobs.batch.gang.example
  annotations: {controller-gen.kubebuilder.io/version: v0.17.0}
spec:
  group: batch.gang.example
  names: {kind: GangJob, listKind: GangJobList, plural: gangjobs, shortNames: [gj], singular: gangjob}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {jsonPath: .status.state.phase, name: STATUS, type: string}
    - {jsonPath: .spec.minAvailable, name: minAvailable, type: integer}
    - {jsonPath: '.status.conditions[?(@.type=="Running")].status', name: Running, type: string, priority: 1}
    - {jsonPath: .metadata.creationTimestamp, name: AGE, type: date}
    schema:
      openAPIV3Schema:
        description: GangJob starts all of its tasks or none.
        type: object
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec:
            type: object
            properties:
              minAvailable: {type: integer, format: int32, minimum: 1}
              queue: {type: string, default: default}
              plugins:
                type: object
                additionalProperties: {type: array, items: {type: string}}
              policies:
                type: array
                items:
                  type: object
                  properties:
                    action: {type: string, enum: [AbortJob, RestartJob, CompleteJob]}
                    event: {type: string}
                    timeout: {type: string, format: duration}
              tasks:
                type: array
                items:
                  type: object
                  properties:
                    name: {type: string, maxLength: 63, pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'}
                    replicas: {type: integer, format: int32, minimum: 0}
                    maxRetry: {type: integer, format: int32}
                    template: {type: object, x-kubernetes-preserve-unknown-fields: true}
            x-kubernetes-validations:
            - {rule: 'self.minAvailable >= 1', message: minAvailable must be positive}
          status:
            type: object
            properties:
              conditions:
                type: array
                items:
                  type: object
                  required: [type]
                  properties:
                    lastTransitionTime: {type: string, format: date-time}
                    status: {type: string}
                    type: {type: string}
                x-kubernetes-list-map-keys: [type]
                x-kubernetes-list-type: map
              state:
                type: object
                properties: {phase: {type: string}}
)";

// Replicas by role, with resources as quantities or numbers, a scale, and two versions of which the older is deprecated.
inline constexpr const char* kTrainerDefinition = R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: trainjobs.train.example.org}
spec:
  group: train.example.org
  names: {kind: TrainJob, plural: trainjobs, singular: trainjob, categories: [all]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      scale:
        specReplicasPath: .spec.replicaSpecs.Worker.replicas
        statusReplicasPath: .status.replicaStatuses.Worker.active
        labelSelectorPath: .status.replicaStatuses.Worker.selector
      status: {}
    additionalPrinterColumns:
    - {name: State, type: string, jsonPath: '.status.conditions[-1:].type'}
    schema: &schema
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [replicaSpecs]
            properties:
              runPolicy:
                type: object
                properties:
                  backoffLimit: {type: integer, format: int32}
                  cleanPodPolicy: {type: string}
                  schedulingPolicy:
                    type: object
                    properties:
                      minResources:
                        type: object
                        additionalProperties:
                          anyOf: [{type: integer}, {type: string}]
                          pattern: '^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$'
                          x-kubernetes-int-or-string: true
              replicaSpecs:
                type: object
                additionalProperties:
                  type: object
                  properties:
                    replicas: {type: integer, format: int32}
                    restartPolicy: {type: string}
                    template:
                      type: object
                      properties:
                        metadata: {type: object, x-kubernetes-preserve-unknown-fields: true}
                        spec:
                          type: object
                          required: [containers]
                          properties:
                            containers:
                              type: array
                              items:
                                type: object
                                required: [name]
                                properties:
                                  name: {type: string}
                                  image: {type: string}
                                  ports:
                                    type: array
                                    items:
                                      type: object
                                      required: [containerPort]
                                      properties:
                                        containerPort: {type: integer, format: int32}
                                        protocol: {default: TCP, type: string}
                                    x-kubernetes-list-map-keys: [containerPort, protocol]
                                    x-kubernetes-list-type: map
                                  resources:
                                    type: object
                                    properties:
                                      limits:
                                        type: object
                                        additionalProperties:
                                          anyOf: [{type: integer}, {type: string}]
                                          x-kubernetes-int-or-string: true
                              x-kubernetes-list-map-keys: [name]
                              x-kubernetes-list-type: map
                            tolerations: {type: array, items: {type: object, x-kubernetes-map-type: atomic, properties: {key: {type: string}}}, x-kubernetes-list-type: atomic}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
  - name: v1beta1
    served: true
    storage: false
    deprecated: true
    schema: *schema
)";

// A cluster of workers with a head; autoscaler options, embedded objects and a webhook that converts.
inline constexpr const char* kClusterDefinition = R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: computeclusters.cluster.example.io}
spec:
  group: cluster.example.io
  names: {kind: ComputeCluster, plural: computeclusters, categories: [all], shortNames: [cc]}
  scope: Namespaced
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {name: webhook, namespace: system, path: /convert}}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [headGroupSpec]
            properties:
              autoscalerOptions:
                type: object
                properties:
                  idleTimeoutSeconds: {type: integer, format: int32}
                  upscalingMode: {type: string, enum: [Default, Aggressive, Conservative]}
                  resources:
                    type: object
                    properties:
                      claims:
                        type: array
                        items: {type: object, required: [name], properties: {name: {type: string}}}
                        x-kubernetes-list-map-keys: [name]
                        x-kubernetes-list-type: map
              headGroupSpec:
                type: object
                properties:
                  rayStartParams: {type: object, additionalProperties: {type: string}}
                  template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
              workerGroupSpecs:
                type: array
                items:
                  type: object
                  required: [groupName, maxReplicas, minReplicas]
                  properties:
                    groupName: {type: string}
                    maxReplicas: {type: integer, format: int32, default: 2147483647}
                    minReplicas: {type: integer, format: int32, default: 0}
                    numOfHosts: {type: integer, format: int32, default: 1}
                    scaleStrategy: {type: object, properties: {workersToDelete: {type: array, items: {type: string}}}}
          status: {type: object, properties: {state: {type: string}, desiredCPU: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}}}
)";

inline std::vector<json::Value> project_definitions() {
  return {yaml_of(kGangJobDefinition), yaml_of(kTrainerDefinition), yaml_of(kClusterDefinition)};
}

}  // namespace tessera::apiserver

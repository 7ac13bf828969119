// Prints the protobuf field numbers of the Kubernetes types that the API server decodes, one message a line:
//
//	go run ./proto_fields >../../../src/apiserver/data/protobuf.fields   (in tests/tools/kubernetes)
//
// The format is told in src/apiserver/routes_protobuf.h.
package main

import (
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authnv1 "k8s.io/api/authentication/v1"
	authzv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var roots = []any{
	corev1.Binding{}, corev1.ConfigMap{}, corev1.Endpoints{}, corev1.Event{}, corev1.LimitRange{}, corev1.Namespace{}, corev1.Node{},
	corev1.PersistentVolume{}, corev1.PersistentVolumeClaim{}, corev1.Pod{}, corev1.PodTemplate{}, corev1.ReplicationController{},
	corev1.ResourceQuota{}, corev1.Secret{}, corev1.Service{}, corev1.ServiceAccount{},
	appsv1.ControllerRevision{}, appsv1.DaemonSet{}, appsv1.Deployment{}, appsv1.ReplicaSet{}, appsv1.StatefulSet{},
	autoscalingv1.Scale{}, autoscalingv1.HorizontalPodAutoscaler{}, autoscalingv2.HorizontalPodAutoscaler{}, batchv1.CronJob{}, batchv1.Job{}, coordv1.Lease{}, discoveryv1.EndpointSlice{}, eventsv1.Event{},
	networkingv1.Ingress{}, networkingv1.IngressClass{}, networkingv1.NetworkPolicy{}, nodev1.RuntimeClass{}, policyv1.Eviction{}, policyv1.PodDisruptionBudget{},
	rbacv1.ClusterRole{}, rbacv1.ClusterRoleBinding{}, rbacv1.Role{}, rbacv1.RoleBinding{}, schedulingv1.PriorityClass{},
	storagev1.CSIDriver{}, storagev1.CSINode{}, storagev1.StorageClass{}, storagev1.VolumeAttachment{}, authnv1.TokenRequest{}, authnv1.TokenReview{}, authnv1.SelfSubjectReview{},
	authzv1.SelfSubjectAccessReview{}, authzv1.SelfSubjectRulesReview{}, authzv1.SubjectAccessReview{}, authzv1.LocalSubjectAccessReview{}, metav1.DeleteOptions{},
}

var special = map[reflect.Type]string{
	reflect.TypeOf(resource.Quantity{}):    "q",
	reflect.TypeOf(intstr.IntOrString{}):   "o",
	reflect.TypeOf(metav1.Time{}):          "T",
	reflect.TypeOf(metav1.MicroTime{}):     "U",
	reflect.TypeOf(runtime.RawExtension{}): "r",
	reflect.TypeOf(metav1.FieldsV1{}):      "r",
	reflect.TypeOf(metav1.Duration{}):      "D",
}

func name(t reflect.Type) string {
	p := strings.TrimPrefix(t.PkgPath(), "k8s.io/api/")
	p = strings.TrimPrefix(p, "k8s.io/apimachinery/pkg/apis/")
	return p + "." + t.Name()
}

var seen = map[string]string{}

func code(t reflect.Type) string {
	if s, ok := special[t]; ok {
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return code(t.Elem())
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "t"
	case reflect.Int32, reflect.Int64, reflect.Int:
		return "i"
	case reflect.Float64:
		return "d"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "b"
		}
		c := code(t.Elem())
		if c[0] == '*' || c[0] == '%' {
			panic(t)
		}
		return "*" + c
	case reflect.Map:
		if t.Elem().Kind() == reflect.Slice && t.Elem().Elem().Kind() != reflect.Uint8 {
			return "%*" + code(t.Elem().Elem()) // values are wrapper messages: items = 1
		}
		return "%" + code(t.Elem())
	case reflect.Struct:
		visit(t)
		return "@" + name(t)
	}
	panic(t.String())
}

func visit(t reflect.Type) {
	n := name(t)
	if _, ok := seen[n]; ok {
		return
	}
	seen[n] = ""
	var out []string
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		tag := f.Tag.Get("protobuf")
		if tag == "" {
			if f.Type != reflect.TypeOf(metav1.TypeMeta{}) {
				fmt.Fprintln(os.Stderr, "no tag:", n, f.Name)
			}
			continue
		}
		num := strings.Split(tag, ",")[1]
		j := strings.Split(f.Tag.Get("json"), ",")
		inline := j[0] == ""
		omit := false
		for _, o := range j[1:] {
			if o == "inline" {
				inline = true
			}
			if o == "omitempty" || o == "omitzero" {
				omit = true
			}
		}
		c := code(f.Type)
		item := num + ":" + j[0] + ":" + c
		if inline {
			item = num + "::" + c
		} else if f.Type.Kind() == reflect.Pointer || !omit && f.Type.Kind() != reflect.Struct {
			item += "?"
		}
		out = append(out, item)
	}
	seen[n] = strings.Join(out, " ")
}

func main() {
	for _, r := range roots {
		visit(reflect.TypeOf(r))
	}
	var names []string
	for n := range seen {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		fmt.Println(strings.TrimSpace(n + " " + seen[n]))
	}
}

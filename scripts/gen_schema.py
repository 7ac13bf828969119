#!/usr/bin/env python3
"""Writes src/kube/data/kubernetes.schema: the facts of the types that the listed kinds reach.

Usage: gen_schema.py RELEASE NEWER_RELEASE > kubernetes.schema
where each release is SWAGGER_JSON GO_API_DIR GO_APIMACHINERY_DIR GO_APIEXTENSIONS_DIR; of the newer one come NEWER_KINDS.

SWAGGER_JSON is api/openapi-spec/swagger.json of the Go module k8s.io/kubernetes; the folders are the modules
k8s.io/api, k8s.io/apimachinery and k8s.io/apiextensions-apiserver of the same release (`go mod download -json`
prints where they lie). Only names, types and list rules are taken, no wording. The OpenAPI document does not say
which zero values a server leaves out, so the json tags of the Go types are read for that.
"""

import json
import pathlib
import re
import sys

KINDS = """
v1: Namespace Node Pod Binding ConfigMap Secret Service ServiceAccount Event Endpoints LimitRange ResourceQuota
v1: PersistentVolume PersistentVolumeClaim PodTemplate ReplicationController Status DeleteOptions
apps/v1: Deployment ReplicaSet StatefulSet DaemonSet ControllerRevision
autoscaling/v1: Scale HorizontalPodAutoscaler
autoscaling/v2: HorizontalPodAutoscaler
authentication.k8s.io/v1: TokenRequest TokenReview SelfSubjectReview
authorization.k8s.io/v1: SubjectAccessReview LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview
batch/v1: Job CronJob
coordination.k8s.io/v1: Lease
discovery.k8s.io/v1: EndpointSlice
events.k8s.io/v1: Event
networking.k8s.io/v1: NetworkPolicy Ingress IngressClass
node.k8s.io/v1: RuntimeClass
policy/v1: PodDisruptionBudget Eviction
rbac.authorization.k8s.io/v1: Role RoleBinding ClusterRole ClusterRoleBinding
scheduling.k8s.io/v1: PriorityClass
storage.k8s.io/v1: StorageClass CSIDriver CSINode VolumeAttachment
apiextensions.k8s.io/v1: CustomResourceDefinition
"""

# Kinds of the release after, served early.
NEWER_KINDS = """
scheduling.k8s.io/v1beta1: PodGroup Workload
"""

EXTRA_TYPES = ["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"]

HEADER = """\
# The types of Kubernetes that tessera serves: names, types, list and patch rules; no wording.
# Source: the OpenAPI document and the Go types of Kubernetes {version}, scheduling.k8s.io/v1beta1 of {newer}; written by
# scripts/gen_schema.py.
#
# type NAME [GROUP/VERSION/KIND ...] [atomic]    an object type; its fields follow, sorted, one space in
#  FIELD TYPE [RULE ...]
# scalar NAME BASE                               a named type without fields
#
# TYPE is BASE, []BASE (list), {{}}BASE (map of strings to BASE) or {{}}[]BASE; BASE is string, bytes, bool, int32,
# int64, double, quantity, intorstring, time, microtime, object (any object), any (any JSON), or a type's NAME.
# Rules: !           required
#        -           a server leaves the zero value out (null for lists and maps: empty ones too)
#        +           a server writes the zero value where the field is absent
#        merge=KEY   strategic merge joins the list's elements by KEY; merge alone: a union of scalars, or of members
#        retain      strategic merge heeds $retainKeys
#        keys=A,B    server-side apply: the list is a map with these keys
#        set, atomic server-side apply: the list is a set; the list or object is replaced as a whole
"""

SCALARS = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "intorstring",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "microtime",
}

GO_FIELD = re.compile(r"^\s+(?:(\w+)\s+)?(\S+)\s+`json:\"([^\"]*)\"")


def go_structs(folder):
    """{"Container": [(json name or "" when inline, go type, options)]} of all types in one package."""
    structs = {}
    for path in sorted(folder.glob("*.go")):
        if path.name.endswith("_test.go") or path.name.startswith("zz_"):
            continue
        name = None
        for line in path.read_text().splitlines():
            line = line.split("//")[0] if line.lstrip().startswith("//") else line
            start = re.match(r"^type (\w+) struct \{", line)
            if start:
                name = start.group(1)
                structs[name] = []
            elif line.startswith("}"):
                name = None
            elif name and (found := GO_FIELD.match(line)):
                options = found.group(3).split(",")
                structs[name].append((options[0], found.group(2), set(options[1:])))
    return structs


class GoFacts:
    def __init__(self, api, apimachinery, apiextensions):
        self.roots = {"io.k8s.api.": api, "io.k8s.apimachinery.": apimachinery,
                      "io.k8s.apiextensions-apiserver.": apiextensions}
        self.packages = {}

    def package(self, type_name):
        for prefix, root in self.roots.items():
            if type_name.startswith(prefix):
                rest = type_name[len(prefix):].rsplit(".", 1)[0].replace(".", "/")
                if rest not in self.packages:
                    self.packages[rest] = go_structs(root / rest)
                return self.packages[rest]
        return {}

    def fields(self, type_name):
        package = self.package(type_name)
        out = {}
        todo = [type_name.rsplit(".", 1)[1]]
        while todo:
            for name, go_type, options in package.get(todo.pop(), []):
                if name:
                    out[name] = (go_type, options)
                elif "inline" in options:
                    todo.append(go_type)
        return out


def ref_name(schema):
    return schema["$ref"].rsplit("/", 1)[1]


class Writer:
    def __init__(self, document, go):
        self.definitions = document["definitions"]
        self.go = go
        self.names = set()

    def reach(self, name):
        if name in self.names:
            return
        self.names.add(name)
        for field in self.definitions[name].get("properties", {}).values():
            for schema in self.inner(field):
                if "$ref" in schema:
                    self.reach(ref_name(schema))

    def inner(self, schema):
        yield schema
        for key in ("items", "additionalProperties"):
            if key in schema:
                yield from self.inner(schema[key])

    def base(self, schema):
        if "$ref" in schema:
            return ref_name(schema)
        kind, form = schema.get("type"), schema.get("format")
        if kind == "integer":
            return form or "int64"
        if kind == "number":
            return "double"
        if kind == "boolean":
            return "bool"
        if kind == "string":
            return "bytes" if form == "byte" else "string"
        return "object" if kind == "object" else "any"

    def field_type(self, schema):
        if "additionalProperties" in schema:
            return "{}" + self.field_type(schema["additionalProperties"])
        if schema.get("type") == "array":
            return "[]" + self.field_type(schema["items"])
        return self.base(schema)

    def is_struct(self, kind):
        return bool(self.definitions.get(kind, {}).get("properties"))

    # A Go struct without fields: its being there says all. Outside of the API's own types such structs hide raw JSON.
    def is_empty_struct(self, name):
        return name.startswith("io.k8s.api.") and self.go.package(name).get(name.rsplit(".", 1)[1]) == []

    def zero_rule(self, kind, go_field):
        if go_field is None:
            return None
        go_type, options = go_field
        omits = "omitempty" in options or "omitzero" in options
        if go_type.startswith("*") or SCALARS.get(kind) == "quantity":
            return None
        if SCALARS.get(kind) in ("time", "microtime"):  # a Go struct, which omitempty never leaves out
            return None if "omitzero" in options else "+"
        if kind.startswith("[]") or kind.startswith("{}"):
            return "-" if omits else None
        if self.is_struct(kind):
            return None if "omitzero" in options else "+"
        if "." in kind or kind in ("bytes", "object", "any"):
            return None
        return "-" if omits else "+"

    def field_line(self, name, schema, required, go_field):
        kind = self.field_type(schema)
        words = [name, kind]
        if required:
            words.append("!")
        zero = self.zero_rule(kind, go_field)
        if zero and not (required and zero == "-" and kind[0] in "[{"):
            words.append(zero)
        strategies = schema.get("x-kubernetes-patch-strategy", "").split(",")
        if "merge" in strategies:
            key = schema.get("x-kubernetes-patch-merge-key")
            words.append(f"merge={key}" if key else "merge")
        if "retainKeys" in strategies:
            words.append("retain")
        if schema.get("x-kubernetes-list-type") == "map":
            words.append("keys=" + ",".join(schema["x-kubernetes-list-map-keys"]))
        if schema.get("x-kubernetes-list-type") == "set":
            words.append("set")
        if "atomic" in (schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-map-type")):
            words.append("atomic")
        return " " + " ".join(words)

    def type_lines(self, name):
        schema = self.definitions[name]
        properties = schema.get("properties")
        if not properties and self.is_empty_struct(name):
            yield f"type {name}"
            return
        if not properties:
            yield f"scalar {name} {SCALARS.get(name) or self.base(schema)}"
            return
        kinds = schema.get("x-kubernetes-group-version-kind", [])
        if len(kinds) > 1:  # DeleteOptions and Status belong to every group
            kinds = [k for k in kinds if k["group"] == "" and k["version"] == "v1"]
        words = ["type", name] + [f"{k['group']}/{k['version']}/{k['kind']}" for k in kinds]
        if schema.get("x-kubernetes-map-type") == "atomic":
            words.append("atomic")
        yield " ".join(words)
        facts = self.go.fields(name)
        for field in sorted(properties):
            yield self.field_line(field, properties[field], field in schema.get("required", []),
                                  facts.get(field))

    def roots(self, kinds_text):
        wanted = set()
        for line in kinds_text.strip().splitlines():
            version, _, kinds = line.partition(":")
            wanted |= {(version, kind) for kind in kinds.split()}
        for name, schema in self.definitions.items():
            for gvk in schema.get("x-kubernetes-group-version-kind", []):
                version = "/".join(x for x in (gvk["group"], gvk["version"]) if x)
                if (version, gvk["kind"]) in wanted:
                    wanted.discard((version, gvk["kind"]))
                    yield name
        if wanted:
            sys.exit(f"no such kinds: {sorted(wanted)}")


def release(arguments):
    document = json.loads(pathlib.Path(arguments[0]).read_text())
    version = re.search(r"@v([\d.]+)", arguments[0])
    return (Writer(document, GoFacts(*(pathlib.Path(p) for p in arguments[1:]))),
            version.group(1) if version else document["info"]["version"])


def main():
    if len(sys.argv) != 9:
        sys.exit(__doc__)
    writer, version = release(sys.argv[1:5])
    newer, newer_version = release(sys.argv[5:])
    for name in list(writer.roots(KINDS)) + EXTRA_TYPES:
        writer.reach(name)
    for name in newer.roots(NEWER_KINDS):
        newer.reach(name)
    print(HEADER.format(version=version, newer=newer_version))
    for name in sorted(writer.names | newer.names):
        print("\n".join((writer if name in writer.names else newer).type_lines(name)))


main()

//go:build ignore

// Writes src/kube/testdata/apply.golden.gz: random sequences of writes to objects, and what the field manager of
// Kubernetes makes of metadata.managedFields and of the objects. In a module that requires k8s.io/client-go v0.36.3:
// go run apply_golden.go 250 | gzip -9n > apply.golden.gz
package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

type obj = map[string]any
type list = []any

var rnd = rand.New(rand.NewSource(11))

func chance(n int) bool        { return rnd.Intn(n) == 0 }
func pick(of ...string) string { return of[rnd.Intn(len(of))] }
func some(n int) []int         { return rnd.Perm(4)[:rnd.Intn(n+1)] }
func letter(i int) string      { return string(rune('a' + i)) }

type noDefaults struct{}

func (noDefaults) Default(runtime.Object) {}

func maybe(o obj, n int, key string, value func() any) {
	if !chance(n) {
		return
	}
	o[key] = value()
}

func labels() any {
	m := obj{}
	for _, i := range some(3) {
		m[letter(i)] = pick("1", "2")
	}
	return m
}

func container(name string) obj {
	c := obj{"name": name}
	maybe(c, 2, "image", func() any { return pick("i1", "i2") })
	maybe(c, 3, "args", func() any { return list{pick("x", "y")} })
	maybe(c, 2, "env", func() any {
		l := list{}
		for _, i := range some(3) {
			e := obj{"name": letter(i)}
			if chance(3) {
				e["valueFrom"] = obj{"fieldRef": obj{"fieldPath": "metadata.name"}}
			} else {
				e["value"] = pick("1", "2")
			}
			l = append(l, e)
		}
		return l
	})
	maybe(c, 3, "ports", func() any {
		l := list{}
		for _, i := range some(2) {
			p := obj{"containerPort": []int{80, 443, 8080, 9}[i]}
			maybe(p, 3, "protocol", func() any { return pick("TCP", "UDP") })
			maybe(p, 3, "name", func() any { return pick("p", "q") })
			l = append(l, p)
		}
		return l
	})
	maybe(c, 3, "resources", func() any {
		r := obj{}
		maybe(r, 2, "limits", func() any { return obj{pick("cpu", "nvidia.com/gpu"): pick("1", "2")} })
		return r
	})
	return c
}

func podSpec(full bool) obj {
	s := obj{}
	l := list{}
	for _, i := range some(2) {
		l = append(l, container(letter(i)))
	}
	if full && len(l) == 0 {
		l = append(l, container("a"))
	}
	if len(l) > 0 {
		s["containers"] = l
	}
	maybe(s, 4, "nodeSelector", labels)
	maybe(s, 4, "tolerations", func() any { return list{obj{"key": pick("a", "b"), "operator": "Exists"}} })
	maybe(s, 4, "volumes", func() any { return list{obj{"name": pick("v", "w"), "emptyDir": obj{}}} })
	maybe(s, 5, "priorityClassName", func() any { return pick("low", "high") })
	maybe(s, 5, "securityContext", func() any { return obj{"runAsUser": rnd.Intn(2) + 1} })
	return s
}

func metadata() obj {
	m := obj{"name": "n", "namespace": "ns"}
	maybe(m, 2, "labels", labels)
	maybe(m, 3, "annotations", labels)
	maybe(m, 4, "finalizers", func() any { return list{pick("f/a", "f/b")} })
	maybe(m, 5, "ownerReferences", func() any {
		return list{obj{"apiVersion": "v1", "kind": "K", "name": "o", "uid": pick("u1", "u2")}}
	})
	return m
}

func conditions() any {
	l := list{}
	for _, i := range some(2) {
		l = append(l, obj{"type": letter(i), "status": pick("True", "False"),
			"lastTransitionTime": "2023-01-01T00:00:00Z", "lastUpdateTime": "2023-01-01T00:00:00Z",
			"lastHeartbeatTime": "2023-01-01T00:00:00Z", "lastProbeTime": "2023-01-01T00:00:00Z"})
	}
	return l
}

func deployment(full bool) obj {
	s := obj{}
	maybe(s, 2, "replicas", func() any { return rnd.Intn(3) })
	if full || chance(2) {
		s["selector"] = obj{"matchLabels": obj{"app": pick("x", "y")}}
	}
	if full || chance(2) {
		s["template"] = obj{"metadata": obj{"labels": labels()}, "spec": podSpec(full)}
	}
	maybe(s, 3, "strategy", func() any {
		return obj{"type": "RollingUpdate", "rollingUpdate": obj{"maxSurge": []any{1, "25%"}[rnd.Intn(2)]}}
	})
	return obj{"spec": s}
}

func pod(full bool) obj { return obj{"spec": podSpec(full)} }

func service(full bool) obj {
	s := obj{}
	maybe(s, 2, "selector", labels)
	maybe(s, 1, "ports", func() any {
		l := list{}
		for _, i := range some(3) {
			p := obj{"port": []int{80, 443, 8080, 9}[i]}
			maybe(p, 2, "name", func() any { return pick("p", "q") })
			maybe(p, 4, "protocol", func() any { return "UDP" })
			maybe(p, 1, "targetPort", func() any { return []any{1, "t"}[rnd.Intn(2)] })
			l = append(l, p)
		}
		return l
	})
	maybe(s, 3, "externalIPs", func() any { return list{pick("1.1.1.1", "2.2.2.2")} })
	return obj{"spec": s}
}

func configMap(bool) obj {
	o := obj{}
	maybe(o, 1, "data", labels)
	maybe(o, 4, "immutable", func() any { return chance(2) })
	return o
}

func node(bool) obj {
	s := obj{}
	maybe(s, 2, "podCIDRs", func() any {
		l := list{}
		for _, i := range some(3) {
			l = append(l, fmt.Sprintf("10.0.%d.0/24", i))
		}
		return l
	})
	maybe(s, 2, "taints", func() any { return list{obj{"key": "k", "value": pick("1", "2"), "effect": "NoSchedule"}} })
	maybe(s, 2, "unschedulable", func() any { return chance(2) })
	return obj{"spec": s}
}

type kind struct {
	gvk  schema.GroupVersionKind
	make func(full bool) obj
}

var kinds = []kind{
	{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, deployment},
	{schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, pod},
	{schema.GroupVersionKind{Version: "v1", Kind: "Service"}, service},
	{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, configMap},
	{schema.GroupVersionKind{Version: "v1", Kind: "Node"}, node},
}

var nullable = map[string][]string{
	"Deployment": {"replicas", "selector"}, "Pod": {"nodeSelector", "tolerations", "volumes"},
	"Service": {"ports", "selector", "externalIPs"}, "Node": {"taints", "podCIDRs"},
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

var converter = applyconfigurations.NewTypeConverter(scheme.Scheme)

func manager(k kind, subresource string) *managedfields.FieldManager {
	reset := fieldpath.NewSet()
	if k.gvk.Kind != "ConfigMap" {
		if subresource == "status" {
			reset = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
		} else {
			reset = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
		}
	}
	gv := k.gvk.GroupVersion()
	m, err := managedfields.NewDefaultFieldManager(converter, scheme.Scheme, noDefaults{}, scheme.Scheme, k.gvk, gv,
		subresource, map[fieldpath.APIVersion]fieldpath.Filter{
			fieldpath.APIVersion(gv.String()): fieldpath.NewExcludeSetFilter(reset)})
	must(err)
	return m
}

func typed(k kind, o obj) runtime.Object {
	out, err := scheme.Scheme.New(k.gvk)
	must(err)
	text, err := json.Marshal(o)
	must(err)
	must(json.Unmarshal(text, out))
	out.GetObjectKind().SetGroupVersionKind(k.gvk)
	return out
}

func untyped(o runtime.Object) obj {
	text, err := json.Marshal(o)
	must(err)
	out := obj{}
	must(json.Unmarshal(text, &out))
	return out
}

func copyOf(o obj) obj {
	text, _ := json.Marshal(o)
	out := obj{}
	must(json.Unmarshal(text, &out))
	return out
}

// Entries written just now get the time of the step.
func setTimes(o runtime.Object, start time.Time, step int) {
	a, err := meta.Accessor(o)
	must(err)
	fields := a.GetManagedFields()
	for i := range fields {
		if fields[i].Time != nil && !fields[i].Time.Before(&metav1.Time{Time: start}) {
			fields[i].Time = &metav1.Time{Time: time.Unix(1700000000+int64(step), 0).UTC()}
		}
	}
	a.SetManagedFields(fields)
}

func step(k kind, live runtime.Object, n int) (obj, runtime.Object) {
	gvk := k.gvk
	s := obj{"manager": pick("a", "b", "c", "d")}
	if chance(12) {
		s["manager"] = "u" + strconv.Itoa(n)
	}
	if live == nil && chance(2) || live != nil && chance(3) {
		// create or update
		created := live == nil
		next := obj{}
		if created {
			next = k.make(true)
			next["metadata"] = metadata()
		} else {
			next = copyOf(untyped(live))
			other := k.make(true)
			other["metadata"] = metadata()
			if k.gvk.Kind != "ConfigMap" && chance(3) {
				s["sub"] = "status"
				next["status"] = obj{}
				if k.gvk.Kind != "Service" {
					next["status"].(obj)["conditions"] = conditions()
				}
				if k.gvk.Kind == "Pod" {
					next["status"].(obj)["phase"] = pick("Pending", "Running")
				}
			} else if chance(2) {
				for key, value := range other {
					if key != "metadata" {
						next[key] = value
					}
				}
			} else {
				m := next["metadata"].(obj)
				for _, key := range []string{"labels", "annotations", "finalizers"} {
					delete(m, key)
					if v, ok := other["metadata"].(obj)[key]; ok {
						m[key] = v
					}
				}
			}
			if _, ok := s["sub"]; !ok && chance(14) {
				next["metadata"].(obj)["managedFields"] = list{obj{}}
				s["reset"] = true
			}
		}
		next["apiVersion"], next["kind"] = gvk.GroupVersion().String(), gvk.Kind
		next["metadata"].(obj)["uid"] = "1"
		before := live
		if created {
			before, _ = scheme.Scheme.New(gvk)
			before.GetObjectKind().SetGroupVersionKind(gvk)
		}
		sub, _ := s["sub"].(string)
		after := typed(k, next)
		in := copyOf(untyped(after))
		delete(in["metadata"].(obj), "managedFields")
		s["op"], s["in"] = "update", in
		start := time.Now().Truncate(time.Second)
		out, err := manager(k, sub).Update(before, after, s["manager"].(string))
		must(err)
		setTimes(out, start, n)
		s["out"] = managedFieldsOf(out)
		return s, out
	}
	config := k.make(live == nil || chance(3))
	config["metadata"] = metadata()
	if chance(6) && live != nil {
		// the same as somebody has
		config = copyOf(untyped(live))
		delete(config["metadata"].(obj), "managedFields")
		delete(config["metadata"].(obj), "uid")
		delete(config, "status")
	}
	if chance(8) {
		if spec, ok := config["spec"].(obj); ok {
			spec[pick(nullable[k.gvk.Kind]...)] = nil
		}
	}
	if chance(20) {
		config["wrong"] = 1
	} else if chance(20) {
		config["metadata"].(obj)["labels"] = obj{"a": 1}
	}
	config["apiVersion"], config["kind"] = gvk.GroupVersion().String(), gvk.Kind
	force := chance(2)
	s["op"], s["in"] = "apply", copyOf(config)
	if force {
		s["force"] = true
	}
	before := live
	if before == nil {
		before, _ = scheme.Scheme.New(gvk)
		before.GetObjectKind().SetGroupVersionKind(gvk)
	}
	start := time.Now().Truncate(time.Second)
	text, _ := json.Marshal(config)
	patch := &unstructured.Unstructured{}
	must(patch.UnmarshalJSON(text))
	out, err := manager(k, "").Apply(before.DeepCopyObject(), patch, s["manager"].(string), force)
	if err != nil {
		if status, ok := err.(errors.APIStatus); ok {
			s["error"] = status.Status().Message
			causes := list{}
			if d := status.Status().Details; d != nil {
				for _, c := range d.Causes {
					causes = append(causes, c.Field+" "+c.Message)
				}
			}
			sort.Slice(causes, func(i, j int) bool { return causes[i].(string) < causes[j].(string) })
			s["causes"] = causes
		} else {
			s["error"] = err.Error()
		}
		return s, live
	}
	if a, _ := meta.Accessor(out); a.GetUID() == "" {
		a.SetUID("1")
	}
	setTimes(out, start, n)
	s["out"] = untyped(out)
	return s, out
}

func managedFieldsOf(o runtime.Object) any {
	m, ok := untyped(o)["metadata"].(obj)["managedFields"]
	if !ok {
		return nil
	}
	return m
}

// A pod without containers is none that a server would keep.
func incomplete(o obj) bool {
	for key, value := range o {
		if (key == "containers" || key == "selector") && value == nil {
			return true
		}
		if inner, ok := value.(obj); ok && incomplete(inner) {
			return true
		}
	}
	return false
}

func main() {
	count, err := strconv.Atoi(os.Args[1])
	must(err)
	fmt.Println("# What the field manager of Kubernetes (k8s.io/apimachinery v0.36.3, structured-merge-diff v6.3.3, types of")
	fmt.Println("# k8s.io/client-go/applyconfigurations) makes of random writes; by apply_golden.go beside this file.")
	fmt.Println("# A line is a sequence of writes to one object: {kind, steps: [{op, manager, sub, force, reset, in, out, error}]}.")
	fmt.Println("# out is managedFields after an update, the object after an apply. Step n has the time 1700000000 s + n.")
	for i := 0; i < count; i++ {
		k := kinds[rnd.Intn(len(kinds))]
		var live runtime.Object
		steps := list{}
		length := 3 + rnd.Intn(4)
		if i%20 == 19 {
			length = 16
		}
		for n := 0; n < length; n++ {
			var s obj
			s, live = step(k, live, n)
			steps = append(steps, s)
			if live != nil && incomplete(untyped(live)) {
				break
			}
		}
		text, err := json.Marshal(obj{"kind": strings.TrimPrefix(k.gvk.GroupVersion().String()+"/"+k.gvk.Kind, "/"), "steps": steps})
		must(err)
		fmt.Println(string(text))
	}
}

// Prints the API server's own types of some specs, whose fields it shows in messages, one type a line:
//
//	go run ./server_types >../../../src/apiserver/data/server.types   (in tests/tools/kubernetes)
//
// The format is told in src/apiserver/server_types.h.
package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/core"
)

// Fields that the public type keeps one level up.
var above = map[string]bool{
	"PodSecurityContext.HostNetwork": true, "PodSecurityContext.HostPID": true, "PodSecurityContext.HostIPC": true,
	"PodSecurityContext.ShareProcessNamespace": true, "PodSecurityContext.HostUsers": true,
}

var lines = map[string]string{}

func jsonName(field reflect.StructField) string {
	return strings.Split(field.Tag.Get("json"), ",")[0]
}

func code(inner, outer reflect.Type) string {
	switch {
	case inner == reflect.TypeOf(resource.Quantity{}):
		return "q"
	case inner.Kind() == reflect.Pointer:
		if outer.Kind() == reflect.Pointer {
			outer = outer.Elem()
		}
		return "*" + code(inner.Elem(), outer)
	case inner.Kind() == reflect.Slice:
		if outer.Kind() != reflect.Slice {
			return "#"
		}
		return "[" + code(inner.Elem(), outer.Elem())
	case inner.Kind() == reflect.Map:
		return "%"
	case inner.Kind() == reflect.String:
		return "s"
	case inner.Kind() == reflect.Bool:
		return "b"
	case inner.Kind() == reflect.Int32 || inner.Kind() == reflect.Int64:
		return "i"
	case inner.Implements(reflect.TypeOf((*json.Marshaler)(nil)).Elem()) || inner.PkgPath() != reflect.TypeOf(core.Pod{}).PkgPath():
		return "#" // written as it is sent
	case inner.Kind() == reflect.Struct && outer.Kind() == reflect.Pointer:
		outer = outer.Elem()
	}
	if inner.Kind() != reflect.Struct || outer.Kind() != reflect.Struct {
		return "#"
	}
	describe(inner, outer)
	return "@" + inner.Name()
}

func fields(name string, inner, outer reflect.Type) []string {
	var out []string
	for i := 0; i < inner.NumField(); i++ {
		field := inner.Field(i)
		if field.Anonymous {
			if field.Type == reflect.TypeOf(metav1.ObjectMeta{}) {
				out = append(out, "labels:metadata.labels:#?", "annotations:metadata.annotations:#?")
				continue
			}
			if public, ok := outer.FieldByName(field.Name); ok && public.Anonymous {
				out = append(out, fields(name, field.Type, public.Type)...)
			} else {
				out = append(out, fields(name, field.Type, outer)...)
			}
			continue
		}
		shown := jsonName(field)
		if shown == "" {
			shown = field.Name
		}
		source := outer
		key := ""
		if above[name+"."+field.Name] {
			source, key = reflect.TypeOf(corev1.PodSpec{}), "^"
		}
		public, ok := source.FieldByName(field.Name)
		if !ok {
			out = append(out, shown+"::"+code(field.Type, field.Type))
			continue
		}
		out = append(out, shown+":"+key+jsonName(public)+":"+code(field.Type, public.Type))
	}
	return out
}

func describe(inner, outer reflect.Type) {
	if _, ok := lines[inner.Name()]; ok {
		return
	}
	lines[inner.Name()] = ""
	lines[inner.Name()] = inner.Name() + " " + strings.Join(fields(inner.Name(), inner, outer), " ")
}

func main() {
	describe(reflect.TypeOf(core.PodTemplateSpec{}), reflect.TypeOf(corev1.PodTemplateSpec{}))
	describe(reflect.TypeOf(core.PersistentVolumeClaimSpec{}), reflect.TypeOf(corev1.PersistentVolumeClaimSpec{}))
	var all []string
	for _, line := range lines {
		all = append(all, line)
	}
	sort.Strings(all)
	fmt.Println(strings.Join(all, "\n"))
}

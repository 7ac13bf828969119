package main

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"

	. "tessera.dev/tests/clients/transcript"
)

// recorder notes the requests that pass.
type recorder struct {
	next  http.RoundTripper
	mutex sync.Mutex
	seen  []string
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mutex.Lock()
	r.seen = append(r.seen, request.Method+" "+request.URL.RequestURI())
	r.mutex.Unlock()
	return r.next.RoundTrip(request)
}

func (r *recorder) count(has func(string) bool) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return len(slices.DeleteFunc(slices.Clone(r.seen), func(line string) bool { return !has(line) }))
}

// recorded is a config whose requests are noted.
func (s session) recorded() (*rest.Config, *recorder) {
	config, noted := rest.CopyConfig(s.config), &recorder{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		noted.next = next
		return noted
	})
	return config, noted
}

func (s session) discovery() {
	Step("discovery, REST mapping, OpenAPI")
	config, noted := s.recorded()
	client := Take(discovery.NewDiscoveryClientForConfig(config))
	version := Take(client.ServerVersion())
	Say("version %s.%s %.7s", version.Major, version.Minor, version.GitVersion)
	groups := Take(restmapper.GetAPIGroupResources(client))
	Say("asked group by group: %v", noted.count(func(line string) bool { return strings.HasPrefix(line, "GET /apis/") }) > 0)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDiscoveryRESTMapper(groups), client, func(string) {})
	for _, kind := range []schema.GroupKind{
		{Kind: "Pod"}, {Kind: "Node"}, {Group: "apps", Kind: "Deployment"}, {Group: "batch", Kind: "CronJob"},
		{Group: "coordination.k8s.io", Kind: "Lease"}, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
		{Group: "policy", Kind: "PodDisruptionBudget"}, {Group: "networking.k8s.io", Kind: "Ingress"},
		{Group: "discovery.k8s.io", Kind: "EndpointSlice"}, {Group: "autoscaling", Kind: "HorizontalPodAutoscaler"},
	} {
		mapping := Take(mapper.RESTMapping(kind))
		Say("%s: %s, %s", kind, mapping.Resource, mapping.Scope.Name())
	}
	for _, short := range []string{"po", "deploy", "svc", "sts", "ds", "pvc", "sa", "cm", "ns", "rs", "cj", "hpa", "netpol"} {
		Say("%s is %s", short, Take(mapper.ResourceFor(schema.GroupVersionResource{Resource: short})))
	}
	_, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Nothing"})
	Say("%v", err)

	paths := Take(client.OpenAPIV3().Paths())
	for _, path := range []string{"api/v1", "apis/apps/v1", "apis/batch/v1"} {
		text := Take(paths[path].Schema(runtime.ContentTypeJSON))
		Say("OpenAPI v3 of %s tells of its kinds: %v", path, strings.Contains(string(text), "x-kubernetes-group-version-kind"))
	}
}

func (s session) openAPI() {
	Step("OpenAPI v2 as protobuf")
	pods := 0
	for _, one := range Take(s.client.Discovery().OpenAPISchema()).GetDefinitions().GetAdditionalProperties() {
		if one.GetName() == "io.k8s.api.core.v1.Pod" {
			pods++
		}
	}
	Say("it has %d definition of a Pod", pods)
}

func (s session) objects() {
	Step("objects: create, get, list, update, delete")
	maps := s.client.CoreV1().ConfigMaps(namespace)
	made := Take(maps.Create(s.ctx, configMap("a", "1", map[string]string{"app": "x"}), metav1.CreateOptions{}))
	Show("created", made)
	_, err := maps.Create(s.ctx, configMap("a", "1", nil), metav1.CreateOptions{})
	Refused("created again", err)
	_, err = maps.Get(s.ctx, "nothing", metav1.GetOptions{})
	Refused("not there", err)
	_, err = maps.Create(s.ctx, configMap("Not A Name", "1", nil), metav1.CreateOptions{})
	Refused("a bad name", err)
	generated := configMap("", "1", map[string]string{"app": "y"})
	generated.GenerateName = "made-"
	Say("generated a name: %v", strings.HasPrefix(Take(maps.Create(s.ctx, generated, metav1.CreateOptions{})).Name, "made-"))
	dry := Take(maps.Create(s.ctx, configMap("dry", "1", nil), metav1.CreateOptions{DryRun: []string{"All"}}))
	_, err = maps.Get(s.ctx, dry.Name, metav1.GetOptions{})
	Refused("after a dry run", err)
	for _, selector := range []string{"app=x", "app in (x,y)", "!app", "app notin (x)"} {
		list := Take(maps.List(s.ctx, metav1.ListOptions{LabelSelector: selector}))
		Say("%s selects %d", selector, len(list.Items))
	}
	_, err = maps.List(s.ctx, metav1.ListOptions{FieldSelector: "data.k=1"})
	Refused("a field that does not select", err)

	other := types.UID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
	err = maps.Delete(s.ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
	Say("deleted by another uid: %s", strings.ReplaceAll(err.Error(), string(made.UID), "UID"))
	Must(maps.Delete(s.ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &made.UID}}))
	Must(maps.DeleteCollection(s.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=y"}))
	Say("left: %d", len(Take(maps.List(s.ctx, metav1.ListOptions{LabelSelector: "app"})).Items))

	secrets := s.client.CoreV1().Secrets(namespace)
	secret := Take(secrets.Create(s.ctx, &corev1.Secret{ObjectMeta: named("s"), StringData: map[string]string{"a": "b"}}, metav1.CreateOptions{}))
	Show("secret", secret)
	service := &corev1.Service{ObjectMeta: named("web"), Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}}}
	Show("service", Take(s.client.CoreV1().Services(namespace).Create(s.ctx, service, metav1.CreateOptions{})))
}

func (s session) conflicts() {
	Step("conflicts: optimistic locking and retry on conflict")
	maps := s.client.CoreV1().ConfigMaps(namespace)
	stale := Take(maps.Create(s.ctx, configMap("counter", "0", nil), metav1.CreateOptions{}))
	fresh := stale.DeepCopy()
	fresh.Data["k"] = "1"
	Take(maps.Update(s.ctx, fresh, metav1.UpdateOptions{}))
	_, err := maps.Update(s.ctx, stale, metav1.UpdateOptions{})
	Refused("a stale update", err)

	var raised sync.WaitGroup
	for range 4 {
		raised.Go(func() {
			for range 5 {
				Must(retry.RetryOnConflict(patient, func() error {
					return s.raise(maps.Get, maps.Update)
				}))
			}
		})
	}
	raised.Wait()
	Say("twenty raises by four: %d letters", len(Take(maps.Get(s.ctx, "counter", metav1.GetOptions{})).Data["k"]))
}

// patient comes to its end under any load.
var patient = wait.Backoff{Steps: 1000, Duration: time.Millisecond, Factor: 1, Jitter: 2}

type get = func(context.Context, string, metav1.GetOptions) (*corev1.ConfigMap, error)
type update = func(context.Context, *corev1.ConfigMap, metav1.UpdateOptions) (*corev1.ConfigMap, error)

func (s session) raise(get get, update update) error {
	now, err := get(s.ctx, "counter", metav1.GetOptions{})
	if err != nil {
		return err
	}
	now.Data["k"] += "x"
	_, err = update(s.ctx, now, metav1.UpdateOptions{})
	return err
}

func (s session) patches() {
	Step("patches of each kind")
	maps := s.client.CoreV1().ConfigMaps(namespace)
	Take(maps.Create(s.ctx, configMap("patched", "1", nil), metav1.CreateOptions{}))
	for _, patch := range []struct {
		kind types.PatchType
		body string
	}{
		{types.JSONPatchType, `[{"op":"add","path":"/data/json","value":"a"},{"op":"test","path":"/data/k","value":"1"}]`},
		{types.MergePatchType, `{"data":{"merge":"b","k":null}}`},
		{types.StrategicMergePatchType, `{"metadata":{"labels":{"l":"c"}},"data":{"$patch":"replace","only":"d"}}`},
		{types.ApplyPatchType, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"patched"},"data":{"apply":"e"}}`},
	} {
		options := metav1.PatchOptions{}
		if patch.kind == types.ApplyPatchType {
			options.FieldManager = "patcher"
		}
		after := Take(maps.Patch(s.ctx, "patched", patch.kind, []byte(patch.body), options))
		Show(string(patch.kind), map[string]any{"data": after.Data, "labels": after.Labels})
	}
	_, err := maps.Patch(s.ctx, "patched", types.JSONPatchType, []byte(`[{"op":"test","path":"/data/only","value":"z"}]`), metav1.PatchOptions{})
	Refused("a test that fails", err)
	_, err = maps.Patch(s.ctx, "patched", types.MergePatchType, []byte(`{"data":{"n":1}}`), metav1.PatchOptions{FieldValidation: "Strict"})
	Say("a number for a word is refused: %v", err != nil)
	_, err = maps.Patch(s.ctx, "patched", types.PatchType("text/plain"), []byte(`{}`), metav1.PatchOptions{})
	Refused("an unknown kind of patch", err)
}

func (s session) pages() {
	Step("lists in pages")
	maps := s.client.CoreV1().ConfigMaps(namespace)
	labels := map[string]string{"paged": "yes"}
	for i := range 25 {
		Take(maps.Create(s.ctx, configMap("page-"+string(rune('a'+i)), "1", labels), metav1.CreateOptions{}))
	}
	options := metav1.ListOptions{Limit: 10}
	first := Take(maps.List(s.ctx, options))
	Take(maps.Create(s.ctx, configMap("page-after", "1", labels), metav1.CreateOptions{}))
	options.Continue = first.Continue
	second := Take(maps.List(s.ctx, options))
	Say("pages of %d and %d at one version: %v; remaining known: %v", len(first.Items), len(second.Items),
		first.ResourceVersion == second.ResourceVersion, first.RemainingItemCount != nil)
	count := 0
	read := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return maps.List(s.ctx, options)
	}))
	read.PageSize = 4
	Must(read.EachListItem(s.ctx, metav1.ListOptions{LabelSelector: "paged=yes"}, func(runtime.Object) error {
		count++
		return nil
	}))
	Say("the pager saw %d", count)
	_, err := maps.List(s.ctx, metav1.ListOptions{Limit: 3, Continue: "nonsense"})
	Say("a continue token of nobody: %s", apierrors.ReasonForError(err))
	_, err = maps.List(s.ctx, metav1.ListOptions{ResourceVersion: "nonsense"})
	Refused("a version that is no number", err)
	Must(maps.DeleteCollection(s.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "paged=yes"}))
}

func (s session) applies() {
	Step("server-side apply with apply configurations")
	maps := s.client.CoreV1().ConfigMaps(namespace)
	one := metav1.ApplyOptions{FieldManager: "one"}
	made := Take(maps.Apply(s.ctx, applycore.ConfigMap("applied", namespace).WithData(map[string]string{"a": "1", "b": "1"}), one))
	Show("applied", made)
	mine := applycore.ConfigMap("applied", namespace).WithData(map[string]string{"b": "2", "c": "2"})
	_, err := maps.Apply(s.ctx, mine, metav1.ApplyOptions{FieldManager: "two"})
	Refused("a field of another manager", err)
	forced := Take(maps.Apply(s.ctx, mine, metav1.ApplyOptions{FieldManager: "two", Force: true}))
	for _, entry := range forced.ManagedFields {
		Say("%s %s owns %s", entry.Operation, entry.Manager, entry.FieldsV1.Raw)
	}
	extracted := Take(applycore.ExtractConfigMap(forced, "one"))
	Say("one still owns %v", extracted.Data)
	after := Take(maps.Apply(s.ctx, applycore.ConfigMap("applied", namespace), one))
	Say("after one gave up all: %v", after.Data)
	_, err = maps.Apply(s.ctx, applycore.ConfigMap("applied", namespace), metav1.ApplyOptions{})
	Refused("without a manager", err)
}

package main

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientmeta "k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	. "tessera.dev/tests/clients/transcript"
)

var watched = map[string]string{"watched": "yes"}

func next(events watch.Interface) watch.Event {
	select {
	case event, open := <-events.ResultChan():
		if !open {
			Fail("the watch ended")
		}
		return event
	case <-time.After(Patience):
		Fail("no event within %s", Patience)
	}
	return watch.Event{}
}

func tell(event watch.Event) {
	if status, is := event.Object.(*metav1.Status); is {
		Say("%s: %d %s", event.Type, status.Code, status.Reason)
		return
	}
	Say("%s %s", event.Type, Take(meta.Accessor(event.Object)).GetName())
}

func (s session) watches() {
	Step("watches: from a version, bookmarks, a version that is too old")
	maps := s.client.CoreV1().ConfigMaps(namespace)
	list := Take(maps.List(s.ctx, metav1.ListOptions{LabelSelector: "watched"}))
	made := Take(maps.Create(s.ctx, configMap("w", "1", watched), metav1.CreateOptions{}))
	made.Data["k"] = "2"
	made = Take(maps.Update(s.ctx, made, metav1.UpdateOptions{}))
	events := Take(maps.Watch(s.ctx, metav1.ListOptions{LabelSelector: "watched", ResourceVersion: list.ResourceVersion}))
	tell(next(events))
	tell(next(events))
	Take(maps.Patch(s.ctx, "w", types.MergePatchType, []byte(`{"metadata":{"labels":{"watched":null}}}`), metav1.PatchOptions{}))
	tell(next(events)) // it left the selection
	Take(maps.Patch(s.ctx, "w", types.MergePatchType, []byte(`{"metadata":{"labels":{"watched":"again"}}}`), metav1.PatchOptions{}))
	tell(next(events))
	Must(maps.Delete(s.ctx, "w", metav1.DeleteOptions{}))
	tell(next(events))
	events.Stop()

	events = Take(maps.Watch(s.ctx, metav1.ListOptions{
		LabelSelector: "watched", AllowWatchBookmarks: true, TimeoutSeconds: ptr.To[int64](4)}))
	marks := 0
	for event := range events.ResultChan() {
		if event.Type == watch.Bookmark {
			marks++
		}
	}
	Say("a bookmark before the watch ends: %v", marks > 0)

	made = Take(maps.Create(s.ctx, configMap("initial", "1", watched), metav1.CreateOptions{}))
	events = Take(maps.Watch(s.ctx, metav1.ListOptions{LabelSelector: "watched", AllowWatchBookmarks: true,
		SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}))
	tell(next(events))
	mark := next(events)
	Say("%s, the end of the initial events: %s", mark.Type,
		Take(meta.Accessor(mark.Object)).GetAnnotations()[metav1.InitialEventsAnnotationKey])
	events.Stop()
	Must(maps.Delete(s.ctx, "initial", metav1.DeleteOptions{}))

	_, err := maps.Watch(s.ctx, metav1.ListOptions{SendInitialEvents: ptr.To(true)})
	Refused("initial events without a match", err)
	_, err = maps.Watch(s.ctx, metav1.ListOptions{ResourceVersion: "nonsense"})
	Refused("a version that is no number", err)
}

// cutter ends the bodies of the watches that pass, as a lost connection does.
type cutter struct {
	next  http.RoundTripper
	mutex sync.Mutex
	open  []*cutBody
}

type cutBody struct {
	io.ReadCloser
	cut atomic.Bool
}

func (b *cutBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if b.cut.Load() {
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

func (c *cutter) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	if err == nil && request.URL.Query().Get("watch") != "" {
		body := &cutBody{ReadCloser: response.Body}
		response.Body = body
		c.mutex.Lock()
		c.open = append(c.open, body)
		c.mutex.Unlock()
	}
	return response, err
}

func (c *cutter) cut() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, body := range c.open {
		body.cut.Store(true)
		body.Close()
	}
	c.open = nil
}

// tally counts what handlers were told.
type tally struct {
	mutex  sync.Mutex
	counts map[string]int
}

func (t *tally) note(what string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	t.counts[what]++
}

func (t *tally) text() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return string(Take(json.Marshal(t.counts)))
}

func (t *tally) handler() cache.ResourceEventHandlerFuncs {
	name := func(object any) string {
		if gone, is := object.(cache.DeletedFinalStateUnknown); is {
			object = gone.Obj
		}
		return Take(meta.Accessor(object)).GetName()
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { t.note("add " + name(object)) },
		UpdateFunc: func(_, object any) { t.note("update " + name(object)) },
		DeleteFunc: func(object any) { t.note("delete " + name(object)) },
	}
}

func (s session) informers() {
	Step("shared informers by watch-list")
	config, noted := s.recorded()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	stores := s.client.CoreV1().ConfigMaps(namespace)
	for _, name := range []string{"i-1", "i-2", "i-3"} {
		Take(stores.Create(s.ctx, configMap(name, name, watched), metav1.CreateOptions{}))
	}
	factory := informers.NewSharedInformerFactoryWithOptions(Take(kubernetes.NewForConfig(config)), 0,
		informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "watched" }))
	informer, told := factory.Core().V1().ConfigMaps(), &tally{}
	Must(informer.Informer().AddIndexers(cache.Indexers{"value": func(object any) ([]string, error) {
		return []string{object.(*corev1.ConfigMap).Data["k"]}, nil
	}}))
	Take(informer.Informer().AddEventHandler(told.handler()))
	for _, other := range []cache.SharedIndexInformer{
		factory.Core().V1().Pods().Informer(), factory.Apps().V1().Deployments().Informer(),
		factory.Batch().V1().Jobs().Informer(), factory.Core().V1().Events().Informer(),
		factory.Coordination().V1().Leases().Informer(),
	} {
		Take(other.AddEventHandler(told.handler()))
	}
	stop := make(chan struct{})
	factory.Start(stop)
	synced := factory.WaitForCacheSync(stop)
	kinds := []string{}
	for kind, yes := range synced {
		kinds = append(kinds, strings.TrimPrefix(kind.String(), "*"))
		if !yes {
			Fail("%s did not sync", kind)
		}
	}
	slices.Sort(kinds)
	Say("synced %v", kinds)
	now := Take(stores.Get(s.ctx, "i-1", metav1.GetOptions{}))
	now.Data["k"] = "changed"
	Take(stores.Update(s.ctx, now, metav1.UpdateOptions{}))
	Must(stores.Delete(s.ctx, "i-2", metav1.DeleteOptions{}))
	Take(stores.Create(s.ctx, configMap("i-4", "i-4", watched), metav1.CreateOptions{}))
	wanted := `{"add i-1":1,"add i-2":1,"add i-3":1,"add i-4":1,"delete i-2":1,"update i-1":1}`
	Until(s.ctx, "what the handlers are told", func() (bool, error) { return told.text() == wanted, nil })
	Say("told %s", told.text())
	indexed := Take(informer.Informer().GetIndexer().ByIndex("value", "changed"))
	Say("the index finds %s", indexed[0].(*corev1.ConfigMap).Name)
	Say("the lister has %d", len(Take(informer.Lister().ConfigMaps(namespace).List(labels.Everything()))))
	lists := noted.count(func(line string) bool { return !strings.Contains(line, "watch=true") })
	initial := noted.count(func(line string) bool { return strings.Contains(line, "sendInitialEvents=true") })
	Say("watch-lists %d, plain lists %d", initial, lists)
	close(stop)
	factory.Shutdown()
	Must(stores.DeleteCollection(s.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "watched"}))
}

func (s session) cutInformer() {
	Step("an informer whose watch is cut goes on where it was")
	config, cuts := rest.CopyConfig(s.config), &cutter{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		cuts.next = next
		return cuts
	})
	stores := s.client.CoreV1().ConfigMaps(namespace)
	client := Take(kubernetes.NewForConfig(config))
	source := cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", namespace,
		func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermNotEqualSelector("metadata.name", "kube-root-ca.crt").String()
		})
	informer, told := cache.NewSharedInformer(source, &corev1.ConfigMap{}, 0), &tally{}
	Take(informer.AddEventHandler(cache.FilteringResourceEventHandler{
		FilterFunc: func(object any) bool { return Take(meta.Accessor(object)).GetLabels()["watched"] != "" },
		Handler:    told.handler(),
	}))
	stop := make(chan struct{})
	defer close(stop)
	go informer.Run(stop)
	Until(s.ctx, "the informer synced", func() (bool, error) { return informer.HasSynced(), nil })
	for i, name := range []string{"cut-1", "cut-2", "cut-3"} {
		Take(stores.Create(s.ctx, configMap(name, "1", watched), metav1.CreateOptions{}))
		cuts.cut()
		Take(stores.Create(s.ctx, configMap(name+"-more", "1", watched), metav1.CreateOptions{}))
		Until(s.ctx, "both seen", func() (bool, error) { return len(told.seen()) == 2*(i+1), nil })
	}
	Say("told %v", told.seen())
	Must(stores.DeleteCollection(s.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "watched"}))
}

// seen is what was added. Updates and how often depend on whether the informer resumed its watch or listed anew.
func (t *tally) seen() []string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	added := slices.DeleteFunc(slices.Collect(maps.Keys(t.counts)), func(what string) bool { return !strings.HasPrefix(what, "add ") })
	slices.Sort(added)
	return added
}

func (s session) dynamic() {
	Step("the dynamic client")
	client := Take(dynamic.NewForConfig(s.config))
	resource := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	deployments := client.Resource(resource).Namespace(namespace)
	template := map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "d"}}, "spec": map[string]any{
		"schedulerName": "none", "containers": []any{map[string]any{"name": "c", "image": "registry.example/c:1"}}}}
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "d"},
		"spec": map[string]any{"replicas": int64(0), "selector": map[string]any{"matchLabels": map[string]any{"app": "d"}}, "template": template}}}
	Show("created", Take(deployments.Create(s.ctx, made, metav1.CreateOptions{})).Object["spec"])
	made.Object["spec"].(map[string]any)["nothing"] = "here"
	made.SetName("strict")
	_, err := deployments.Create(s.ctx, made, metav1.CreateOptions{FieldValidation: "Strict"})
	Refused("an unknown field", err)

	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	lister := factory.ForResource(resource)
	stop := make(chan struct{})
	defer close(stop)
	lister.Informer()
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	patched := Take(deployments.Patch(s.ctx, "d", types.MergePatchType, []byte(`{"metadata":{"labels":{"seen":"yes"}}}`), metav1.PatchOptions{}))
	Say("labels %v", patched.GetLabels())
	Until(s.ctx, "the change in the informer", func() (bool, error) {
		list, err := lister.Lister().List(labels.SelectorFromSet(labels.Set{"seen": "yes"}))
		return err == nil && len(list) == 1, err
	})
	scale := Take(deployments.Get(s.ctx, "d", metav1.GetOptions{}, "scale"))
	Show("scale", map[string]any{"kind": scale.GetKind(), "version": scale.GetAPIVersion(), "spec": scale.Object["spec"]})
	applied := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "d"}, "spec": map[string]any{"paused": true}}}
	after := Take(deployments.Apply(s.ctx, "d", applied, metav1.ApplyOptions{FieldManager: "dynamic"}))
	paused, _, _ := unstructured.NestedBool(after.Object, "spec", "paused")
	Say("applied: paused %v", paused)
	Must(deployments.Delete(s.ctx, "d", metav1.DeleteOptions{}))
	_, err = client.Resource(schema.GroupVersionResource{Group: "nothing.example", Version: "v1", Resource: "things"}).List(s.ctx, metav1.ListOptions{})
	Refused("a kind of nobody", err)
}

func (s session) metadata() {
	Step("the metadata client")
	client := Take(clientmeta.NewForConfig(s.config))
	resource := corev1.SchemeGroupVersion.WithResource("configmaps")
	stores := s.client.CoreV1().ConfigMaps(namespace)
	Take(stores.Create(s.ctx, configMap("m", "1", watched), metav1.CreateOptions{}))
	Show("got", Take(client.Resource(resource).Namespace(namespace).Get(s.ctx, "m", metav1.GetOptions{})))
	list := Take(client.Resource(resource).Namespace(namespace).List(s.ctx, metav1.ListOptions{LabelSelector: "watched"}))
	Say("a list of %d, the first %s", len(list.Items), list.Items[0].Name)
	factory := metadatainformer.NewFilteredSharedInformerFactory(client, 0, namespace,
		func(options *metav1.ListOptions) { options.LabelSelector = "watched" })
	informer, told := factory.ForResource(resource), &tally{}
	Take(informer.Informer().AddEventHandler(told.handler()))
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	Must(stores.Delete(s.ctx, "m", metav1.DeleteOptions{}))
	Until(s.ctx, "the end seen", func() (bool, error) { return told.text() == `{"add m":1,"delete m":1}`, nil })
	Say("told %s", told.text())
}

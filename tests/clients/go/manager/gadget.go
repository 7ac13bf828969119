package main

import (
	"context"
	_ "embed"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
	controller "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	options "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	. "tessera.dev/tests/clients/transcript"
)

//go:embed gadget_crd.yaml
var gadgetDefinition []byte

var gadgetVersion = schema.GroupVersion{Group: "sizer.example.com", Version: "v1"}

// Gadget is a custom kind, as a project would write it.
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              GadgetSpec   `json:"spec"`
	Status            GadgetStatus `json:"status,omitempty"`
}

type GadgetSpec struct {
	Replicas int32  `json:"replicas,omitempty"`
	Color    string `json:"color,omitempty"`
}

type GadgetStatus struct {
	Replicas           int32              `json:"replicas,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

type GadgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Gadget `json:"items"`
}

func (g *Gadget) DeepCopyObject() runtime.Object {
	out := *g
	out.ObjectMeta = *g.ObjectMeta.DeepCopy()
	out.Status.Conditions = append([]metav1.Condition(nil), g.Status.Conditions...)
	return &out
}

func (l *GadgetList) DeepCopyObject() runtime.Object {
	out := &GadgetList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Gadget))
	}
	return out
}

// gadgeteer says in the status what it saw.
type gadgeteer struct{ client client.Client }

func (g *gadgeteer) Reconcile(ctx context.Context, request controller.Request) (controller.Result, error) {
	var gadget Gadget
	if err := g.client.Get(ctx, request.NamespacedName, &gadget); err != nil {
		return controller.Result{}, client.IgnoreNotFound(err)
	}
	before := gadget.DeepCopyObject().(*Gadget)
	gadget.Status.Replicas = gadget.Spec.Replicas
	gadget.Status.ObservedGeneration = gadget.Generation
	meta.SetStatusCondition(&gadget.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue,
		Reason: "Seen", Message: "it is " + gadget.Spec.Color, ObservedGeneration: gadget.Generation})
	return controller.Result{}, client.IgnoreNotFound(g.client.Status().Patch(ctx, &gadget, client.MergeFrom(before)))
}

func gadgetScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(gadgetVersion, &Gadget{}, &GadgetList{})
	metav1.AddToGroupVersion(scheme, gadgetVersion)
	return scheme
}

func define(ctx context.Context) dynamic.ResourceInterface {
	definitions := Take(dynamic.NewForConfig(Config())).Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	made := &unstructured.Unstructured{}
	Must(yaml.Unmarshal(gadgetDefinition, &made.Object))
	Take(definitions.Create(ctx, made, metav1.CreateOptions{}))
	Until(ctx, "the definition established", func() (bool, error) {
		now, err := definitions.Get(ctx, made.GetName(), metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(now.Object, "status", "conditions")
		for _, condition := range conditions {
			fields := condition.(map[string]any)
			if fields["type"] == "Established" && fields["status"] == "True" {
				return true, nil
			}
		}
		return false, nil
	})
	return definitions
}

// custom runs a manager for a custom kind, from its definition to the end of it.
func custom(ctx context.Context) {
	Step("a custom kind and its reconciler")
	definitions := define(ctx)
	scheme := gadgetScheme()
	made := Take(controller.NewManager(Config(), controller.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}}}))
	Must(controller.NewControllerManagedBy(made).For(&Gadget{}).
		WithOptions(options.Options{SkipNameValidation: ptr.To(true)}).Complete(&gadgeteer{made.GetClient()}))
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- made.Start(running) }()
	direct := Take(client.New(Config(), client.Options{Scheme: scheme}))

	Until(ctx, "the kind served", func() (bool, error) {
		var list GadgetList
		err := direct.List(ctx, &list, client.InNamespace(namespace))
		return err == nil, err
	})
	gadget := &Gadget{ObjectMeta: metav1.ObjectMeta{Name: "g", Namespace: namespace}, Spec: GadgetSpec{Color: "blue"}}
	Must(direct.Create(ctx, gadget))
	Say("made with %d replicas", gadget.Spec.Replicas)
	seen(ctx, direct, 1)
	// One fault each: kube-apiserver tells several in the order of a Go map.
	bad := metav1.ObjectMeta{Name: "bad", Namespace: namespace}
	Refused("a color of no list", direct.Create(ctx, &Gadget{ObjectMeta: bad, Spec: GadgetSpec{Color: "red"}}))
	Refused("too many", direct.Create(ctx, &Gadget{ObjectMeta: bad, Spec: GadgetSpec{Color: "blue", Replicas: 12}}))
	Must(direct.Get(ctx, key("g"), gadget))
	gadget.Spec.Replicas = 5
	Must(direct.Update(ctx, gadget))
	seen(ctx, direct, 2)
	var blue GadgetList
	Must(direct.List(ctx, &blue, client.InNamespace(namespace), client.MatchingFields{"spec.color": "blue"}))
	Say("selected by color: %d", len(blue.Items))
	Must(direct.Delete(ctx, gadget))
	gone(ctx, direct, &Gadget{}, "g")
	stop()
	Must(<-ended)
	Must(definitions.Delete(ctx, "gadgets."+gadgetVersion.Group, metav1.DeleteOptions{}))
	Until(ctx, "the kind gone", func() (bool, error) {
		return direct.List(ctx, &blue, client.InNamespace(namespace)) != nil, nil
	})
	Say("the kind is gone")
}

func seen(ctx context.Context, reader client.Client, generation int64) {
	var gadget Gadget
	Until(ctx, "the status of the gadget", func() (bool, error) {
		err := reader.Get(ctx, key("g"), &gadget)
		return err == nil && gadget.Status.ObservedGeneration == generation, err
	})
	Show("gadget", map[string]any{"generation": gadget.Generation, "spec": gadget.Spec, "status": gadget.Status})
}

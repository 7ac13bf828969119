package main

import (
	"context"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	controller "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	options "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const (
	colorIndex = "data.color"
	finalizer  = "sizer.example.com/cleanup"
)

// sizer makes a deployment and a service for each config map with the label sized=yes.
type sizer struct {
	name     string
	noted    *log
	client   client.Client
	recorder events.EventRecorder
}

func (s *sizer) setUp(ctx context.Context, manager controller.Manager) error {
	err := manager.GetFieldIndexer().IndexField(ctx, &corev1.ConfigMap{}, colorIndex, func(object client.Object) []string {
		return []string{object.(*corev1.ConfigMap).Data["color"]}
	})
	if err != nil {
		return err
	}
	sized := predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetLabels()["sized"] == "yes" })
	return controller.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}, builder.WithPredicates(sized)).
		Owns(&appsv1.Deployment{}).Owns(&corev1.Service{}).
		WithOptions(options.Options{SkipNameValidation: ptr.To(true), MaxConcurrentReconciles: 2}).Complete(s)
}

func (s *sizer) Reconcile(ctx context.Context, request controller.Request) (controller.Result, error) {
	var asked corev1.ConfigMap
	if err := s.client.Get(ctx, request.NamespacedName, &asked); err != nil {
		return controller.Result{}, client.IgnoreNotFound(err)
	}
	if !asked.DeletionTimestamp.IsZero() {
		return controller.Result{}, s.finalize(ctx, &asked)
	}
	if controllerutil.AddFinalizer(&asked, finalizer) {
		return controller.Result{}, s.client.Update(ctx, &asked)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: asked.Name, Namespace: asked.Namespace}}
	did, err := controllerutil.CreateOrUpdate(ctx, s.client, deployment, func() error { return s.shape(deployment, &asked) })
	if err != nil {
		return controller.Result{}, err
	}
	if did == controllerutil.OperationResultCreated {
		s.noted.note("%s made %s", s.name, asked.Name)
		s.recorder.Eventf(&asked, nil, corev1.EventTypeNormal, "Made", "Create", "%s replicas", asked.Data["replicas"])
	}
	return controller.Result{}, s.serve(ctx, &asked)
}

func (s *sizer) shape(deployment *appsv1.Deployment, asked *corev1.ConfigMap) error {
	replicas, err := strconv.ParseInt(asked.Data["replicas"], 10, 32)
	if err != nil {
		return err
	}
	labels := map[string]string{"app": asked.Name}
	deployment.Labels = map[string]string{"sized": "yes"}
	deployment.Spec.Replicas = ptr.To(int32(replicas))
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	deployment.Spec.Template.Spec.SchedulerName = "none"
	if len(deployment.Spec.Template.Spec.Containers) == 0 {
		deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "registry.example/app:1"}}
	}
	return controllerutil.SetControllerReference(asked, deployment, s.client.Scheme())
}

// serve applies a service and says in its status where it is reached.
func (s *sizer) serve(ctx context.Context, asked *corev1.ConfigMap) error {
	owner := applymeta.OwnerReference().WithAPIVersion("v1").WithKind("ConfigMap").WithName(asked.Name).WithUID(asked.UID).
		WithController(true).WithBlockOwnerDeletion(true)
	applied := applycore.Service(asked.Name, asked.Namespace).WithOwnerReferences(owner).WithSpec(applycore.ServiceSpec().
		WithType(corev1.ServiceTypeLoadBalancer).WithSelector(map[string]string{"app": asked.Name}).
		WithPorts(applycore.ServicePort().WithName("http").WithPort(80).WithTargetPort(intstr.FromInt32(8080))))
	if err := s.client.Apply(ctx, applied, client.FieldOwner("sizer"), client.ForceOwnership); err != nil {
		return err
	}
	var service corev1.Service
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(asked), &service); err != nil {
		return client.IgnoreNotFound(err) // the cache has not seen it yet; its event brings us back
	}
	if len(service.Status.LoadBalancer.Ingress) > 0 {
		return nil
	}
	before := service.DeepCopy()
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	return s.client.Status().Patch(ctx, &service, client.MergeFrom(before), client.FieldOwner("sizer"))
}

func (s *sizer) finalize(ctx context.Context, asked *corev1.ConfigMap) error {
	if !controllerutil.ContainsFinalizer(asked, finalizer) {
		return nil
	}
	s.noted.note("%s finalized %s", s.name, asked.Name)
	s.recorder.Eventf(asked, nil, corev1.EventTypeNormal, "Finalized", "Delete", "%s is done", asked.Name)
	before := asked.DeepCopy()
	controllerutil.RemoveFinalizer(asked, finalizer)
	return client.IgnoreNotFound(s.client.Patch(ctx, asked, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// controller-runtime against a server: two managers with leader election, and a reconciler that makes a deployment and a
// service for each config map that asks for them. Prints a transcript (package transcript).
package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	controller "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	. "tessera.dev/tests/clients/transcript"
)

const (
	namespace = "manager"
	leaseName = "sizer.example.com"
)

// log tells which manager reconciled what.
type log struct {
	mutex sync.Mutex
	lines []string
}

func (l *log) note(format string, values ...any) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if line := fmt.Sprintf(format, values...); !slices.Contains(l.lines, line) {
		l.lines = append(l.lines, line)
	}
}

func (l *log) tell() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	slices.Sort(l.lines)
	for _, line := range l.lines {
		Say("%s", line)
	}
	l.lines = nil
}

// running is one manager.
type running struct {
	manager controller.Manager
	stop    context.CancelFunc
	ended   chan error
}

func start(ctx context.Context, name string, noted *log) running {
	scheme := runtime.NewScheme()
	Must(clientscheme.AddToScheme(scheme))
	made := Take(controller.NewManager(Config(), controller.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		LeaderElection: true, LeaderElectionID: leaseName, LeaderElectionNamespace: namespace,
		LeaderElectionReleaseOnCancel: true, LeaseDuration: ptr.To(4 * time.Second), RenewDeadline: ptr.To(2 * time.Second),
		RetryPeriod: ptr.To(200 * time.Millisecond),
		Cache:       cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	}))
	Must((&sizer{name: name, noted: noted, client: made.GetClient(), recorder: made.GetEventRecorder("sizer")}).setUp(ctx, made))
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- made.Start(ctx) }()
	return running{made, stop, ended}
}

func main() {
	klog.LogToStderr(true)
	controller.SetLogger(klog.Background())
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	direct := Take(client.New(Config(), client.Options{}))
	Must(direct.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	noted := &log{}

	Step("the first manager leads and reconciles")
	first := start(ctx, "first", noted)
	<-first.manager.Elected()
	second := start(ctx, "second", noted)
	Must(direct.Create(ctx, wish("small", "1", "blue")))
	Must(direct.Create(ctx, wish("big", "3", "green")))
	settled(ctx, direct, "small", 1)
	settled(ctx, direct, "big", 3)
	noted.tell()
	tellObjects(ctx, direct, "big")

	Step("its cache finds by an indexed field and by label")
	reader := first.manager.GetClient()
	for _, color := range []string{"blue", "green", "red"} {
		var list corev1.ConfigMapList
		Must(reader.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{colorIndex: color}))
		Say("%s: %d", color, len(list.Items))
	}
	var owned appsv1.DeploymentList
	Must(reader.List(ctx, &owned, client.MatchingLabels{"sized": "yes"}))
	Say("deployments with the label: %d", len(owned.Items))
	Must(direct.Create(ctx, wish("plain", "1", "")))

	Step("what is changed by hand is put right")
	var deployment appsv1.Deployment
	Must(direct.Get(ctx, key("small"), &deployment))
	Must(direct.Patch(ctx, &deployment, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":5}}`))))
	settled(ctx, direct, "small", 1)
	Must(direct.Delete(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "small", Namespace: namespace}}))
	settled(ctx, direct, "small", 1)
	Say("small has one replica")

	Step("the first stops, the second takes over")
	handOver(ctx, direct, first, second)
	noted.tell()
	Must(direct.Create(ctx, wish("late", "2", "red")))
	settled(ctx, direct, "late", 2)
	noted.tell()

	Step("finalizers run, then what is owned goes")
	Must(direct.Delete(ctx, wish("big", "", "")))
	gone(ctx, direct, &corev1.ConfigMap{}, "big")
	gone(ctx, direct, &appsv1.Deployment{}, "big")
	gone(ctx, direct, &corev1.Service{}, "big")
	noted.tell()

	Step("events")
	tellEvents(ctx, direct)
	second.stop()
	Must(<-second.ended)
	custom(ctx)
}

func key(name string) client.ObjectKey { return client.ObjectKey{Namespace: namespace, Name: name} }

// wish is what the reconciler acts on.
func wish(name, replicas, color string) *corev1.ConfigMap {
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Data: map[string]string{"replicas": replicas, "color": color}}
	if color != "" {
		made.Labels = map[string]string{"sized": "yes"}
	}
	return made
}

func settled(ctx context.Context, reader client.Client, name string, replicas int32) {
	Until(ctx, fmt.Sprintf("%s with %d replicas", name, replicas), func() (bool, error) {
		var deployment appsv1.Deployment
		if err := reader.Get(ctx, key(name), &deployment); err != nil {
			return false, err
		}
		var service corev1.Service
		err := reader.Get(ctx, key(name), &service)
		ready := len(service.Status.LoadBalancer.Ingress) == 1
		return ready && deployment.Status.Replicas == replicas && *deployment.Spec.Replicas == replicas, err
	})
}

func gone(ctx context.Context, reader client.Client, object client.Object, name string) {
	Until(ctx, fmt.Sprintf("%T %s gone", object, name), func() (bool, error) {
		err := reader.Get(ctx, key(name), object)
		return errors.IsNotFound(err), nil
	})
	Say("%T %s is gone", object, name)
}

func tellObjects(ctx context.Context, reader client.Client, name string) {
	var asked corev1.ConfigMap
	Must(reader.Get(ctx, key(name), &asked))
	Say("finalizers %v", asked.Finalizers)
	var deployment appsv1.Deployment
	Must(reader.Get(ctx, key(name), &deployment))
	Show("deployment", map[string]any{"spec": deployment.Spec, "owners": deployment.OwnerReferences})
	var service corev1.Service
	Must(reader.Get(ctx, key(name), &service))
	Show("service", map[string]any{"ports": service.Spec.Ports, "status": service.Status, "owners": service.OwnerReferences})
	for _, entry := range service.ManagedFields {
		Say("%s of %q by %s", entry.Operation, entry.Subresource, entry.Manager)
	}
}

func handOver(ctx context.Context, reader client.Client, first, second running) {
	var before, after coordinationv1.Lease
	Must(reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: leaseName}, &before))
	select {
	case <-second.manager.Elected():
		Fail("the second leads beside the first")
	default:
	}
	first.stop()
	Must(<-first.ended)
	select {
	case <-second.manager.Elected():
	case <-time.After(Patience):
		Fail("the second does not lead")
	}
	Must(reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: leaseName}, &after))
	Say("another holds the lease: %v; transitions %d", *before.Spec.HolderIdentity != *after.Spec.HolderIdentity,
		*after.Spec.LeaseTransitions)
}

func tellEvents(ctx context.Context, reader client.Client) {
	var list eventsv1.EventList
	Until(ctx, "the events of three and of one end", func() (bool, error) {
		err := reader.List(ctx, &list, client.InNamespace(namespace))
		return err == nil && len(lines(list)) == 4, err
	})
	for _, line := range lines(list) {
		Say("%s", line)
	}
	var old corev1.EventList
	Must(reader.List(ctx, &old, client.InNamespace(namespace), client.MatchingFields{"reason": "Finalized"}))
	Say("as core/v1: %s %s, by %s", old.Items[0].InvolvedObject.Name, old.Items[0].Message, old.Items[0].ReportingController)
}

func lines(list eventsv1.EventList) []string {
	told := []string{}
	for _, event := range list.Items {
		if event.ReportingController != "sizer" {
			continue
		}
		line := strings.Join([]string{event.Type, event.Reason, event.Action, event.Regarding.Kind, event.Regarding.Name, event.Note}, " ")
		if !slices.Contains(told, line) {
			told = append(told, line)
		}
	}
	slices.Sort(told)
	return told
}

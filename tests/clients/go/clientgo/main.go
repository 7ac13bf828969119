// client-go against a server: typed clients that speak protobuf where the server does, informers, the dynamic and the
// metadata client, discovery, apply configurations, leases. Prints a transcript (package transcript).
package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"tessera.dev/tests/clients/transcript"
)

const namespace = "client-go"

// session is what every part works with.
type session struct {
	ctx    context.Context
	config *rest.Config
	client kubernetes.Interface
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	config := transcript.Config()
	config.UserAgent = "client-go-test"
	typed := rest.CopyConfig(config)
	typed.ContentType = "application/vnd.kubernetes.protobuf"
	typed.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	s := session{ctx, config, transcript.Take(kubernetes.NewForConfig(typed))}

	s.prepare()
	for _, part := range []func(){
		s.discovery, s.objects, s.conflicts, s.patches, s.pages, s.applies, s.pods, s.evictions, s.jobs, s.deployments,
		s.events, s.tokens, s.leases, s.watches, s.informers, s.cutInformer, s.dynamic, s.metadata, s.openAPI,
	} {
		part()
	}
	transcript.Step("end")
	transcript.Must(s.client.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}))
	transcript.Until(ctx, "the namespace gone", func() (bool, error) {
		list, err := s.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + namespace})
		return err == nil && len(list.Items) == 0, err
	})
	transcript.Say("the namespace is gone")
}

func (s session) prepare() {
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	transcript.Take(s.client.CoreV1().Namespaces().Create(s.ctx, made, metav1.CreateOptions{}))
	transcript.Until(s.ctx, "the default service account", func() (bool, error) {
		_, err := s.client.CoreV1().ServiceAccounts(namespace).Get(s.ctx, "default", metav1.GetOptions{})
		return err == nil, err
	})
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace}
}

func configMap(name, value string, labels map[string]string) *corev1.ConfigMap {
	made := &corev1.ConfigMap{ObjectMeta: named(name), Data: map[string]string{"k": value}}
	made.Labels = labels
	return made
}

// pod has no scheduler: on neither side will it ever run by itself.
func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: named(name), Spec: podSpec()}
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		SchedulerName: "none",
		Containers: []corev1.Container{{
			Name: "main", Image: "registry.example/app:1",
			Ports: []corev1.ContainerPort{{ContainerPort: 8080}},
		}},
	}
}

package main

import (
	"context"
	"fmt"
	"sort"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authv1 "k8s.io/api/authentication/v1"
	authzv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	. "tessera.dev/tests/clients/transcript"

	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
)

func (s session) pods() {
	Step("pods: defaults, status, immutability, binding")
	pods := s.client.CoreV1().Pods(namespace)
	Show("created", Take(pods.Create(s.ctx, pod("p"), metav1.CreateOptions{})))
	s.setPhase("p", corev1.PodRunning)
	running := Take(pods.Get(s.ctx, "p", metav1.GetOptions{}))
	Say("phase %s", running.Status.Phase)
	running.Spec.Containers[0].Ports[0].ContainerPort = 8081
	_, err := pods.Update(s.ctx, running, metav1.UpdateOptions{})
	Refused("another port", err)
	running = Take(pods.Get(s.ctx, "p", metav1.GetOptions{}))
	running.Spec.Containers[0].Image = "registry.example/app:2"
	Say("image %s", Take(pods.Update(s.ctx, running, metav1.UpdateOptions{})).Spec.Containers[0].Image)
	bad := pod("bad")
	bad.Spec.Containers[0].Image = ""
	bad.Spec.RestartPolicy = "Sometimes"
	_, err = pods.Create(s.ctx, bad, metav1.CreateOptions{})
	Refused("a bad pod", err)
	Must(pods.Delete(s.ctx, "p", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
	_, err = pods.Get(s.ctx, "p", metav1.GetOptions{})
	Refused("after its end", err)
}

// setPhase does what the kubelet would.
func (s session) setPhase(name string, phase corev1.PodPhase) {
	pods := s.client.CoreV1().Pods(namespace)
	Until(s.ctx, "the phase of "+name, func() (bool, error) {
		now, err := pods.Get(s.ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		now.Status.Phase = phase
		ready := corev1.ConditionFalse
		if phase == corev1.PodRunning {
			ready = corev1.ConditionTrue
		}
		now.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.Now()}}
		_, err = pods.UpdateStatus(s.ctx, now, metav1.UpdateOptions{})
		return err == nil, err
	})
}

func (s session) evictions() {
	Step("evictions under a budget")
	pods, budgets := s.client.CoreV1().Pods(namespace), s.client.PolicyV1().PodDisruptionBudgets(namespace)
	for _, name := range []string{"kept-0", "kept-1"} {
		made := pod(name)
		made.Labels = map[string]string{"app": "kept"}
		Take(pods.Create(s.ctx, made, metav1.CreateOptions{}))
		s.setPhase(name, corev1.PodRunning)
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: named("kept"), Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "kept"}}}}
	Take(budgets.Create(s.ctx, budget, metav1.CreateOptions{}))
	Until(s.ctx, "one disruption allowed", func() (bool, error) {
		now, err := budgets.Get(s.ctx, "kept", metav1.GetOptions{})
		return err == nil && now.Status.DisruptionsAllowed == 1, err
	})
	zero := &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	Must(pods.EvictV1(s.ctx, &policyv1.Eviction{ObjectMeta: named("kept-0"), DeleteOptions: zero}))
	err := pods.EvictV1(s.ctx, &policyv1.Eviction{ObjectMeta: named("kept-1"), DeleteOptions: zero})
	Say("the second eviction is refused: %v", err != nil)
	Until(s.ctx, "the budget counted again", func() (bool, error) {
		now, err := budgets.Get(s.ctx, "kept", metav1.GetOptions{})
		return err == nil && now.Status.ExpectedPods == 1 && now.Status.DisruptionsAllowed == 0 && len(now.Status.DisruptedPods) == 0, err
	})
	Refused("an eviction too many", pods.EvictV1(s.ctx, &policyv1.Eviction{ObjectMeta: named("kept-1"), DeleteOptions: zero}))
	Must(budgets.Delete(s.ctx, "kept", metav1.DeleteOptions{}))
	Must(pods.Delete(s.ctx, "kept-1", *zero))
}

func (s session) jobs() {
	Step("a job, its pod finished by hand")
	jobs, pods := s.client.BatchV1().Jobs(namespace), s.client.CoreV1().Pods(namespace)
	spec := podSpec()
	spec.RestartPolicy = corev1.RestartPolicyNever
	job := &batchv1.Job{ObjectMeta: named("once"), Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}}}
	Show("created", Take(jobs.Create(s.ctx, job, metav1.CreateOptions{})))
	var name string
	Until(s.ctx, "the pod of the job", func() (bool, error) {
		list, err := pods.List(s.ctx, metav1.ListOptions{LabelSelector: "job-name=once"})
		if err == nil && len(list.Items) == 1 {
			name = list.Items[0].Name
		}
		return name != "", err
	})
	s.setPhase(name, corev1.PodSucceeded)
	Until(s.ctx, "the job complete", func() (bool, error) {
		now, err := jobs.Get(s.ctx, "once", metav1.GetOptions{})
		return err == nil && now.Status.CompletionTime != nil, err
	})
	Show("status", Take(jobs.Get(s.ctx, "once", metav1.GetOptions{})).Status)
	Must(jobs.Delete(s.ctx, "once", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))
	Until(s.ctx, "the pod of the job gone", func() (bool, error) {
		list, err := pods.List(s.ctx, metav1.ListOptions{LabelSelector: "job-name=once"})
		return err == nil && len(list.Items) == 0, err
	})
}

func (s session) deployments() {
	Step("a deployment, scaled and brought to a new template")
	deployments, sets := s.client.AppsV1().Deployments(namespace), s.client.AppsV1().ReplicaSets(namespace)
	labels := map[string]string{"app": "web"}
	made := &appsv1.Deployment{ObjectMeta: named("web"), Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()}}}
	Show("created", Take(deployments.Create(s.ctx, made, metav1.CreateOptions{})).Spec)
	settled := func(replicas int32) {
		Until(s.ctx, fmt.Sprintf("%d replicas", replicas), func() (bool, error) {
			now, err := deployments.Get(s.ctx, "web", metav1.GetOptions{})
			return err == nil && now.Status.ObservedGeneration == now.Generation && now.Status.Replicas == replicas, err
		})
	}
	settled(2)
	scale := Take(deployments.GetScale(s.ctx, "web", metav1.GetOptions{}))
	Say("scale %d of %s", scale.Spec.Replicas, scale.Status.Selector)
	scale.Spec.Replicas = 3
	Take(deployments.UpdateScale(s.ctx, "web", scale, metav1.UpdateOptions{}))
	settled(3)
	now := Take(deployments.Get(s.ctx, "web", metav1.GetOptions{}))
	now.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	now.Spec.Template.Spec.Containers[0].Image = "registry.example/app:2"
	_, err := deployments.Update(s.ctx, now, metav1.UpdateOptions{})
	if err != nil { // the controller may have written the status in between
		now = Take(deployments.Get(s.ctx, "web", metav1.GetOptions{}))
		now.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		now.Spec.Template.Spec.Containers[0].Image = "registry.example/app:2"
		Take(deployments.Update(s.ctx, now, metav1.UpdateOptions{}))
	}
	Until(s.ctx, "two replica sets, one empty", func() (bool, error) {
		list, err := sets.List(s.ctx, metav1.ListOptions{LabelSelector: "app=web"})
		counts := []int{}
		for _, set := range list.Items {
			counts = append(counts, int(set.Status.Replicas))
		}
		sort.Ints(counts)
		return err == nil && fmt.Sprint(counts) == "[0 3]", err
	})
	settled(3)
	last := Take(deployments.Get(s.ctx, "web", metav1.GetOptions{}))
	Say("generation %d, updated %d, unavailable %d, revision %s", last.Generation, last.Status.UpdatedReplicas,
		last.Status.UnavailableReplicas, last.Annotations["deployment.kubernetes.io/revision"])
	Must(deployments.Delete(s.ctx, "web", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}))
	Until(s.ctx, "the deployment and all below it gone", func() (bool, error) {
		one, err := deployments.List(s.ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		two, err := s.client.CoreV1().Pods(namespace).List(s.ctx, metav1.ListOptions{LabelSelector: "app=web"})
		return err == nil && len(one.Items)+len(two.Items) == 0, err
	})
}

func (s session) events() {
	Step("events by the recorder")
	about := Take(s.client.CoreV1().ConfigMaps(namespace).Create(s.ctx, configMap("about", "1", nil), metav1.CreateOptions{}))
	scheme := runtime.NewScheme()
	Must(corev1.AddToScheme(scheme))
	broadcaster := record.NewBroadcaster(record.WithContext(s.ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: s.client.CoreV1().Events(namespace)})
	recorder := broadcaster.NewRecorder(scheme, corev1.EventSource{Component: "tester"})
	for range 3 {
		recorder.Event(about, corev1.EventTypeWarning, "Tried", "it was tried")
	}
	events := s.client.CoreV1().Events(namespace)
	selector := metav1.ListOptions{FieldSelector: "involvedObject.name=about,reason=Tried,type=Warning"}
	Until(s.ctx, "one event, counted three times", func() (bool, error) {
		list, err := events.List(s.ctx, selector)
		return err == nil && len(list.Items) == 1 && list.Items[0].Count == 3, err
	})
	event := Take(events.List(s.ctx, selector)).Items[0]
	event.Name = "about.x"
	Show("event", event)
}

func (s session) tokens() {
	Step("a token of a service account, and what it may")
	accounts := s.client.CoreV1().ServiceAccounts(namespace)
	Take(accounts.Create(s.ctx, &corev1.ServiceAccount{ObjectMeta: named("robot")}, metav1.CreateOptions{}))
	request := &authv1.TokenRequest{Spec: authv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}
	token := Take(accounts.CreateToken(s.ctx, "robot", request, metav1.CreateOptions{})).Status.Token
	review := &authv1.TokenReview{Spec: authv1.TokenReviewSpec{Token: token}}
	seen := Take(s.client.AuthenticationV1().TokenReviews().Create(s.ctx, review, metav1.CreateOptions{}))
	Say("reviewed: %v %s %v", seen.Status.Authenticated, seen.Status.User.Username, seen.Status.User.Groups)
	config := rest.AnonymousClientConfig(s.config)
	config.BearerToken = token
	robot := Take(kubernetes.NewForConfig(config))
	self := Take(robot.AuthenticationV1().SelfSubjectReviews().Create(s.ctx, &authv1.SelfSubjectReview{}, metav1.CreateOptions{}))
	Say("it says that it is %s", self.Status.UserInfo.Username)
	_, err := robot.CoreV1().ConfigMaps(namespace).List(s.ctx, metav1.ListOptions{})
	Refused("without a role", err)
	role := &rbacv1.Role{ObjectMeta: named("reader"), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}}}}
	Take(s.client.RbacV1().Roles(namespace).Create(s.ctx, role, metav1.CreateOptions{}))
	binding := &rbacv1.RoleBinding{ObjectMeta: named("reader"), RoleRef: rbacv1.RoleRef{
		APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "robot", Namespace: namespace}}}
	Take(s.client.RbacV1().RoleBindings(namespace).Create(s.ctx, binding, metav1.CreateOptions{}))
	Until(s.ctx, "the right to list", func() (bool, error) {
		_, err := robot.CoreV1().ConfigMaps(namespace).List(s.ctx, metav1.ListOptions{})
		return err == nil, err
	})
	for _, verb := range []string{"get", "list", "delete"} {
		ask := &authzv1.SelfSubjectAccessReview{Spec: authzv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authzv1.ResourceAttributes{Namespace: namespace, Verb: verb, Resource: "configmaps"}}}
		answer := Take(robot.AuthorizationV1().SelfSubjectAccessReviews().Create(s.ctx, ask, metav1.CreateOptions{}))
		Say("may %s: %v, %s", verb, answer.Status.Allowed, answer.Status.Reason)
	}
	Must(accounts.Delete(s.ctx, "robot", metav1.DeleteOptions{}))
	Until(s.ctx, "the token refused", func() (bool, error) {
		_, err = robot.CoreV1().ConfigMaps(namespace).List(s.ctx, metav1.ListOptions{})
		return err != nil, nil
	})
	Refused("the token of an account that is gone", err)
}

func (s session) leases() {
	Step("leader election by a lease")
	leading := make(chan string, 4)
	run := func(name string) context.CancelFunc {
		ctx, cancel := context.WithCancel(s.ctx)
		lock := &resourcelock.LeaseLock{LeaseMeta: named("leader"), Client: s.client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name}}
		go leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, ReleaseOnCancel: true, LeaseDuration: 4 * time.Second, RenewDeadline: 2 * time.Second,
			RetryPeriod: 200 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leading <- name },
				OnStoppedLeading: func() {},
			}})
		return cancel
	}
	stop := run("first")
	Say("leads: %s", <-leading)
	leases := s.client.CoordinationV1().Leases(namespace)
	Until(s.ctx, "the lease renewed", func() (bool, error) { // so that no write is on its way when it stops
		now, err := leases.Get(s.ctx, "leader", metav1.GetOptions{})
		return err == nil && now.Spec.RenewTime.After(now.Spec.AcquireTime.Time), err
	})
	defer run("second")()
	stop()
	Say("leads: %s", <-leading)
	lease := Take(leases.Get(s.ctx, "leader", metav1.GetOptions{}))
	Say("held by %s for %d s", *lease.Spec.HolderIdentity, *lease.Spec.LeaseDurationSeconds)
}

// The scheduler of Kubernetes with the plugin for gangs of the scheduler-plugins, and no other of theirs.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/restclient"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"sigs.k8s.io/scheduler-plugins/pkg/coscheduling"
	_ "sigs.k8s.io/scheduler-plugins/apis/config/scheme"
)

func main() { os.Exit(cli.Run(app.NewSchedulerCommand(app.WithPlugin(coscheduling.Name, coscheduling.New)))) }

// Calls kubelet's own walk on a directory, as kubelet does after a mount, and prints how many nanoseconds it took.
// Only the walk is timed: in kubelet no process is started for it.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/volume"
)

type mounter struct {
	volume.Mounter
	path string
}

func (m mounter) GetPath() string                  { return m.path }
func (m mounter) GetAttributes() volume.Attributes { return volume.Attributes{} }

func main() {
	group, err := strconv.ParseInt(os.Args[2], 10, 64)
	if err == nil {
		policy := v1.FSGroupChangeAlways
		started := time.Now()
		err = volume.SetVolumeOwnership(mounter{path: os.Args[1]}, &group, &policy, nil)
		fmt.Println(time.Since(started).Nanoseconds())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Calls a CSI node server as kubelet does: each call dials anew. With "serve" it is a server that only binds, the least that a
// driver can do.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
)

type volume struct {
	ID      string
	Target  string
	Group   string
	Context map[string]string
}

// The field by its number, because Kubernetes 1.20 has csi.proto of before volume_mount_group, the third field of MountVolume.
const groupTag = 3<<3 | 2

func capability(group string) *csi.VolumeCapability {
	mount := &csi.VolumeCapability_MountVolume{}
	if group != "" {
		mount.XXX_unrecognized = append([]byte{groupTag, byte(len(group))}, group...)
	}
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: mount},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

func call(socket, verb string, v volume) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	began := time.Now()
	dial := func(ctx context.Context, path string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	conn, err := grpc.Dial(socket, grpc.WithInsecure(), grpc.WithContextDialer(dial), grpc.WithAuthority("localhost"))
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	node := csi.NewNodeClient(conn)
	if verb == "publish" {
		_, err = node.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
			VolumeId: v.ID, TargetPath: v.Target, VolumeCapability: capability(v.Group), VolumeContext: v.Context,
		}, grpc.WaitForReady(true))
	} else {
		_, err = node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: v.ID, TargetPath: v.Target})
	}
	return time.Since(began), err
}

type bindServer struct{ csi.UnimplementedNodeServer }

func (*bindServer) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if err := os.MkdirAll(r.TargetPath, 0750); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, unix.Mount(r.VolumeContext["source"], r.TargetPath, "", unix.MS_BIND, "")
}

func (*bindServer) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := unix.Unmount(r.TargetPath, 0); err != nil {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, os.Remove(r.TargetPath)
}

func serve(socket string) error {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	csi.RegisterNodeServer(server, &bindServer{})
	return server.Serve(listener)
}

// Makes one call for each volume on stdin, so many at once, and prints the nanoseconds of all and of each.
func callAll(socket, verb, atOnce string) error {
	width, err := strconv.Atoi(atOnce)
	if err != nil {
		return err
	}
	var volumes []volume
	if err := json.NewDecoder(os.Stdin).Decode(&volumes); err != nil {
		return err
	}
	took := make([]int64, len(volumes))
	errs := make([]error, len(volumes))
	next := make(chan int)
	var done sync.WaitGroup
	began := time.Now()
	for i := 0; i < width; i++ {
		done.Add(1)
		go func() {
			defer done.Done()
			for at := range next {
				each, err := call(socket, verb, volumes[at])
				took[at], errs[at] = each.Nanoseconds(), err
			}
		}()
	}
	for at := range volumes {
		next <- at
	}
	close(next)
	done.Wait()
	all := time.Since(began).Nanoseconds()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]interface{}{"all": all, "each": took})
}

func main() {
	var err error
	if os.Args[1] == "serve" {
		err = serve(os.Args[2])
	} else {
		err = callAll(os.Args[2], os.Args[1], os.Args[3])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Binds a path to another as container runtimes do: mount(2) with MS_BIND|MS_REC. With --fd the target is given as
// /proc/self/fd/N, as runc does it since 1.0.0-rc95. Prints "ok" or the errno's name.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <errno.h>
#include <sys/mount.h>

int main(int argc, char **argv)
{
	char target[64];

	if (argc == 4 && strcmp(argv[1], "--fd") == 0) {
		int fd = open(argv[3], O_PATH | O_CLOEXEC);

		if (fd < 0) {
			perror(argv[3]);
			return 2;
		}
		snprintf(target, sizeof(target), "/proc/self/fd/%d", fd);
		argv[1] = argv[2];
		argv[2] = target;
	} else if (argc != 3) {
		return 2;
	}
	puts(mount(argv[1], argv[2], NULL, MS_BIND | MS_REC, NULL) == 0 ? "ok" : strerrorname_np(errno));
	return 0;
}

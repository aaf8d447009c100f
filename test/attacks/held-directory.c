/*
 * Keeps a directory locked: getdents64(2) writes into a page that never comes, and the kernel holds the lock of the directory
 * meanwhile. Whoever changes the directory's group or adds a name to it waits in the kernel. Runs until it is killed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096

int main(int count, char **arguments)
{
	int faults = syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = {.api = UFFD_API};
	char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register range = {.range = {(unsigned long)page, PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
	if (faults < 0 || page == MAP_FAILED || ioctl(faults, UFFDIO_API, &api) || ioctl(faults, UFFDIO_REGISTER, &range)) {
		perror("userfaultfd");
		return 2;
	}
	if (count < 2)
		return 0;
	int directory = open(arguments[1], O_RDONLY | O_DIRECTORY);
	if (directory < 0)
		return 1;
	puts("holds");
	fflush(stdout);
	return syscall(SYS_getdents64, directory, page, PAGE) < 0;
}

/*
 * Waits for a FUSE server for ever while it holds the lock of its own memory: whoever reads its /proc/PID/cmdline waits
 * too. The server lets those who open the file a second time not use the pages of the first one, who has one locked.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int count, char **arguments)
{
	char byte;
	int file = count == 2 ? open(arguments[1], O_RDONLY) : -1;
	if (file < 0)
		return 1;
	if (fork() == 0) {
		read(file, &byte, 1) < 0 ? _exit(1) : _exit(0);
	}
	usleep(300 * 1000);
	int again = open(arguments[1], O_RDONLY);
	puts("waits");
	fflush(stdout);
	return mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, again, 0) == MAP_FAILED;
}

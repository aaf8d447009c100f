/* Ends with a page of a file that is yet to be written: the kernel waits for its server before the process is gone. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int count, char **arguments)
{
	int file = count == 2 ? open(arguments[1], O_RDWR) : -1;
	char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (file < 0 || page == MAP_FAILED)
		return 1;
	/* A close would write it. */
	close(file);
	page[0] = 1;
	return 0;
}

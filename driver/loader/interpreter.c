#include "loader.h"
#include "sys.h"

static int protection(word flags) {
  return (flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) | (flags & PF_X ? PROT_EXEC : 0);
}

static void map(word at, word size, int prot, int flags, int fd, word offset) {
  long result = mmap(at, size, prot, MAP_PRIVATE | MAP_FIXED | flags, fd, offset);
  if (failed(result)) fail("the carried ld.so cannot be mapped", result);
}

static void map_segment(const Elf64_Phdr *segment, word bias, word page, int fd) {
  int prot = protection(segment->p_flags);
  word start = (bias + segment->p_vaddr) & -page;
  word file_end = bias + segment->p_vaddr + segment->p_filesz;
  word end = bias + segment->p_vaddr + segment->p_memsz;
  word file_pages_end = (file_end + page - 1) & -page;
  map(start, file_end - start, prot, 0, fd, segment->p_offset & -page);
  if (end <= file_end) return;
  /* To the end of the page: ld.so's first allocations come from there and are taken to be zero. */
  zero((char *)file_end, file_pages_end - file_end);
  if (end > file_pages_end) map(file_pages_end, end - file_pages_end, prot, MAP_ANONYMOUS, -1, 0);
}

/* Maps the carried ld.so from its memory file, as the kernel would map a program's interpreter. The build has checked its headers. */
word map_interpreter(int fd, word page, word *entry) {
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)config.interpreter.start;
  const Elf64_Phdr *first = (const Elf64_Phdr *)(config.interpreter.start + header->e_phoff), *last = first + header->e_phnum;
  word high = 0;
  for (const Elf64_Phdr *segment = first; segment < last; segment++)
    if (segment->p_type == PT_LOAD) high = segment->p_vaddr + segment->p_memsz;
  /* One reservation, so that the segments keep their distances. */
  long base = mmap(0, high, 0, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (failed(base)) fail("there is no memory for ld.so", base);
  for (const Elf64_Phdr *segment = first; segment < last; segment++)
    if (segment->p_type == PT_LOAD) map_segment(segment, base, page, fd);
  close(fd);
  *entry = base + header->e_entry;
  return base;
}

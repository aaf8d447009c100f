#include "loader.h"
#include "sys.h"

#define NOT_USABLE INTERPRETER " is not a dynamic loader for this machine"

static int protection(word flags) {
  return (flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) | (flags & PF_X ? PROT_EXEC : 0);
}

static void map(word at, word size, int prot, int flags, int fd, word offset) {
  long result = mmap(at, size, prot, MAP_PRIVATE | MAP_FIXED | flags, fd, offset);
  if (failed(result)) fail("cannot map " INTERPRETER, result);
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

word map_interpreter(word page, word *entry) {
  union {
    Elf64_Ehdr header;
    char bytes[2048];
  } file;
  long fd = open(INTERPRETER);
  if (failed(fd)) fail(INTERPRETER " is missing, this host has no glibc", fd);
  const Elf64_Ehdr *header = &file.header;
  long size = pread(fd, &file, sizeof file, 0);
  word table_end = header->e_phoff + header->e_phnum * sizeof(Elf64_Phdr);
  if (size < (long)sizeof *header || *(unsigned *)header->e_ident != 0x464c457f || header->e_machine != ELF_MACHINE ||
      header->e_type != ET_DYN || header->e_phentsize != sizeof(Elf64_Phdr) || table_end > (word)size)
    fail(NOT_USABLE, 0);

  const Elf64_Phdr *first = (const Elf64_Phdr *)(file.bytes + header->e_phoff), *last = first + header->e_phnum;
  word low = -1, high = 0;
  for (const Elf64_Phdr *segment = first; segment < last; segment++) {
    if (segment->p_type != PT_LOAD) continue;
    if (low == (word)-1) low = segment->p_vaddr & -page;
    high = segment->p_vaddr + segment->p_memsz;
  }
  if (high <= low) fail(NOT_USABLE, 0);
  /* One reservation, so that the segments keep their distances. */
  long base = mmap(0, high - low, 0, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (failed(base)) fail("there is no memory for " INTERPRETER, base);
  for (const Elf64_Phdr *segment = first; segment < last; segment++)
    if (segment->p_type == PT_LOAD) map_segment(segment, base - low, page, fd);
  close(fd);
  *entry = base - low + header->e_entry;
  return base - low;
}

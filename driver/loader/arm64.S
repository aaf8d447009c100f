/* ld.so passes x0 (its exit function) on to the program's entry: before_program must hand it through. */
.section .text.start, "ax"
.globl _start
_start:
  mov x29, #0
  mov x30, #0
  mov x0, sp
  sub sp, sp, #16
  mov x1, sp
  bl load
  mov x16, x0
  mov x0, #0
  mov x30, #0
  br x16
.globl before_program
before_program:
  stp x0, x30, [sp, #-16]!
  bl finish
  mov x16, x0
  ldp x0, x30, [sp], #16
  br x16
.section .note.GNU-stack, "", %progbits

/*
 * A program whose symbols are of every kind that the symbol tests ask for. It is compiled several
 * ways (PIE, fixed address, stripped with a separate debug file, stripped with minidebuginfo) and
 * never run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, used))

int cxx_method(int x) __asm__("_ZN4base4Task3runEi");
int rust_v0(int x) __asm__("_RNvNtCs1234_7mycrate3foo3bar");
int rust_legacy(int x) __asm__("_ZN7mycrate3foo17h05af221e174051e9E");
int global_function(int x);
int __global_alias(int x) __attribute__((alias("global_function")));
int weak_alias(int x) __attribute__((weak, alias("global_function")));

KEEP int cxx_method(int x)
{
	return x * 3 + getpid();
}

KEEP int rust_v0(int x)
{
	return x * 5 + getppid();
}

KEEP int rust_legacy(int x)
{
	return x * 7 + (int)getuid();
}

KEEP static int static_function(int x)
{
	return x * 11 + (int)random();
}

KEEP int global_function(int x)
{
	return static_function(x) + cxx_method(x);
}

/* A sized symbol, bytes that belong to nobody, a label without a size, data among code. */
__asm__(".pushsection .text.assembler, \"ax\", %progbits\n"
	".globl sized_symbol\n"
	".type sized_symbol, %function\n"
	"sized_symbol: .skip 16\n"
	".size sized_symbol, 16\n"
	".skip 32\n"
	".globl bare_label\n"
	"bare_label: .skip 24\n"
	".globl outer_symbol\n"
	".type outer_symbol, %function\n"
	"outer_symbol: .skip 16\n"
	".globl inner_symbol\n"
	".type inner_symbol, %function\n"
	"inner_symbol: .skip 8\n"
	".size inner_symbol, 8\n"
	"inside_label: .skip 8\n"
	".size outer_symbol, 32\n"
	".globl \"$s4main3fooyyF\"\n"
	".type \"$s4main3fooyyF\", %function\n"
	"\"$s4main3fooyyF\": .skip 8\n"
	".size \"$s4main3fooyyF\", 8\n"
	".type table_in_code, %object\n"
	"table_in_code: .skip 8\n"
	".size table_in_code, 8\n"
	".popsection\n");

int main(int argc, char **argv)
{
	puts(argv[0]);
	return global_function(argc) + rust_v0(argc) + rust_legacy(argc) + (int)getgid();
}

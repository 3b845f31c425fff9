/*
 * A program with Go's table as the linker of a position-independent cgo program leaves it: in
 * .data.rel.ro, described by words that relocations fill in. It has C code before its "Go" code.
 * The test finds that code by .go.buildinfo, and never runs it.
 */
__asm__(".text\n"
	"before: .skip 64\n"
	".p2align 4\n"
	"go_text:\n"
	"go_work: .skip 32\n"
	"go_other: .skip 16\n"
	"go_etext:\n"

	".section .go.buildinfo, \"a\", %progbits\n"
	".long go_work - .\n"

	".section .data.rel.ro.go, \"aw\", %progbits\n"
	".quad 0xfffffff1fffffff1\n" /* looks like a table and is none */
	".p2align 5\n"
	"table: .long 0xfffffff1\n"
	".byte 0, 0, 1, 8\n"
	".quad 2, 1, 0, names - table, units - table, files - table, values - table, list - table\n"
	"names: .byte 0\n"
	"name_work: .asciz \"main.work\"\n"
	"name_other: .asciz \"main.other\"\n"
	"name_inlined: .asciz \"main.inlined\"\n"
	"files: .asciz \"/src/main.go\"\n"
	"values: .byte 0\n"
	"stream_file: .byte 2, 32, 0\n"         /* file 0 */
	"stream_line: .byte 42, 8, 20, 24, 0\n" /* 20, then 30 */
	"stream_tree: .byte 0, 16, 2, 16, 0\n"  /* -1, then 0 */
	".p2align 3\n"
	"units: .long 0\n"
	"list: .long go_work - go_text, record_work - list, go_other - go_text, record_other - "
	"list\n"
	".long go_etext - go_text\n"
	"record_work: .long go_work - go_text, name_work - names, 0, 0, 0\n"
	".long stream_file - values, stream_line - values, 3, 0, 19\n"
	".byte 0, 0, 0, 4\n"
	".long 0, 0, stream_tree - values, -1, -1, -1, tree - gofunc\n"
	"record_other: .long go_other - go_text, name_other - names, 0, 0, 0, 0, 0, 0, 0, 0\n"
	".byte 0, 0, 0, 0\n"

	".section .rodata\n"
	".p2align 3\n"
	"gofunc: .quad 0\n"
	"tree: .byte 0, 0, 0, 0\n"
	".long name_inlined - names, 4, 18\n"

	".section .data.rel.ro.go\n"
	".p2align 3\n"
	".quad table\n" /* another word that leads to the table */
	"module: .quad table\n"
	".skip 19 * 8\n"
	".quad go_text, go_etext, go_text, go_etext\n"
	".skip 16 * 8\n"
	".quad gofunc, table\n"
	".text\n");

int main(void)
{
	return 0;
}

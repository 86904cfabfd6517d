/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel's recording knows a JVM by: a libjvm.so with its USDT probes (systemtap's UserSpaceProbeImplementation), where no JVM is at
 * hand or none that stops when it is told to.
 */
#include "tests/integration/kernel_stop_jvm.h"

/* A nop, and the note that says where it is, of which provider, its name, and where its arguments are. */
#define PROBE(provider, name, arguments)                                                                                              \
	__asm__ volatile("990: nop\n"                                                                                                  \
	                 ".pushsection .note.stapsdt,\"\",\"note\"\n"                                                                  \
	                 ".balign 4\n"                                                                                                 \
	                 ".4byte 992f-991f, 994f-993f, 3\n"                                                                            \
	                 "991: .asciz \"stapsdt\"\n"                                                                                   \
	                 "992: .balign 4\n"                                                                                            \
	                 "993: .8byte 990b, stand_in_base, 0\n"                                                                        \
	                 ".asciz \"" provider "\", \"" name "\", \"" arguments "\"\n"                                                  \
	                 "994: .balign 4\n"                                                                                            \
	                 ".popsection")

__asm__(".pushsection .stapsdt.base,\"a\"\n"
        "stand_in_base: .space 1\n"
        ".popsection");

__attribute__((visibility("default"), noinline)) void stand_in_safepoint_begin(void)
{
	PROBE("hs_private", "safepoint__begin", "");
}

__attribute__((visibility("default"), noinline)) void stand_in_safepoint_end(void)
{
	PROBE("hs_private", "safepoint__end", "");
}

__attribute__((visibility("default"), noinline)) void stand_in_operation(void)
{
	PROBE("hotspot", "vmops__begin", "8@%rdi 8@%rsi 4@%edx");
	PROBE("hotspot", "vmops__end", "8@%rdi 8@%rsi 4@%edx");
}

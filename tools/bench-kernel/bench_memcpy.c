// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Speed of the kernel's memcpy: reading the parameter "cold" or "warm" measures
 * copies of "size" bytes and returns bytes per second. Cold: every copy uses
 * other pages, more than any cache holds. Warm: always the same pages.
 */

#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#define SPAN	(256UL << 20)

static ulong size = 65536;
static char *from, *to;

static int measure(char *buffer, const struct kernel_param *kp)
{
	bool cold = kp->arg;
	ulong bytes = READ_ONCE(size), at = 0, done = 0;
	u64 start, ns;

	if (!bytes || bytes > SPAN)
		return -EINVAL;
	if (!cold)
		memcpy(to, from, bytes);
	start = ktime_get_ns();
	do {
		memcpy(to + at, from + at, bytes);
		/*
		 * The compiler must not omit a copy whose result is not used.
		 */
		barrier();
		done += bytes;
		if (cold) {
			at += bytes;
			if (at > SPAN - bytes)
				at = 0;
		}
		cond_resched();
		ns = ktime_get_ns() - start;
	} while (ns < 200 * NSEC_PER_MSEC);
	return sysfs_emit(buffer, "%llu\n",
			  mul_u64_u64_div_u64(done, NSEC_PER_SEC, ns));
}

static const struct kernel_param_ops measure_ops = { .get = measure };

module_param(size, ulong, 0644);
MODULE_PARM_DESC(size, "bytes in one copy");
module_param_cb(cold, &measure_ops, (void *)1, 0400);
MODULE_PARM_DESC(cold, "bytes per second, pages not in the cache");
module_param_cb(warm, &measure_ops, NULL, 0400);
MODULE_PARM_DESC(warm, "bytes per second, the same pages again and again");

static int __init bench_memcpy_init(void)
{
	from = vmalloc(SPAN);
	to = vmalloc(SPAN);
	if (!from || !to) {
		vfree(from);
		vfree(to);
		return -ENOMEM;
	}
	memset(from, 1, SPAN);
	memset(to, 2, SPAN);
	return 0;
}
module_init(bench_memcpy_init);

static void __exit bench_memcpy_exit(void)
{
	vfree(from);
	vfree(to);
}
module_exit(bench_memcpy_exit);

MODULE_DESCRIPTION("Speed of the kernel's memcpy");
MODULE_LICENSE("Dual BSD/GPL");

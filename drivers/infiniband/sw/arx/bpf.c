// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * BPF programs that control congestion are struct_ops of the type struct
 * arx_cc_ops. Programs need the kernel's JIT compiler and the BTF of this
 * module, which Kbuild makes by pahole if the kernel's headers have a vmlinux.
 *
 * A program gets a pointer to struct arx_cc. The verifier lets the program read
 * all of the struct, and write to the part of struct arx_cc_bpf that
 * arx_bpf_struct_access() allows. A loaded program holds the module.
 */

#include <linux/bpf.h>
#include <linux/bpf_verifier.h>
#include <linux/btf.h>
#include <linux/module.h>
#include <linux/stddef.h>

#include "bpf.h"
#include "cc_bpf.h"

#if IS_ENABLED(CONFIG_BPF_SYSCALL) && IS_ENABLED(CONFIG_BPF_JIT) && \
	IS_ENABLED(CONFIG_DEBUG_INFO_BTF_MODULES)

/* This module's types. */
static const struct btf *arx_bpf_btf;
/* Among these, struct arx_cc. 0: no program was verified yet. */
static u32 arx_bpf_cc_id;

static int arx_bpf_struct_init(struct btf *btf)
{
	arx_bpf_btf = btf;
	arx_cc_bpf_able = true;
	return 0;
}

/*
 * A program reads an argument of its function. The only pointer among all
 * arguments of all functions is a struct arx_cc, which tells the type's number.
 * That number never changes. The verifier asks here before the program has a
 * pointer by which the program may write.
 */
static bool arx_bpf_is_valid_access(int off, int size,
				    enum bpf_access_type type,
				    const struct bpf_prog *prog,
				    struct bpf_insn_access_aux *info)
{
	if (!bpf_tracing_btf_ctx_access(off, size, type, prog, info))
		return false;
	if (base_type(info->reg_type) == PTR_TO_BTF_ID)
		WRITE_ONCE(arx_bpf_cc_id, info->btf_id);
	return true;
}

/* A program writes to a struct of the kernel. Returns 0 or -EACCES. */
static int arx_bpf_struct_access(struct bpf_verifier_log *log,
				 const struct bpf_reg_state *reg,
				 int off, int size)
{
	if (reg->btf != arx_bpf_btf ||
	    reg->btf_id != READ_ONCE(arx_bpf_cc_id) ||
	    !(reg->type & PTR_TRUSTED)) {
		bpf_log(log, "only a function's struct arx_cc is writable\n");
		return -EACCES;
	}
	if (off < offsetof(struct arx_cc, bpf.window) ||
	    off + size > offsetofend(struct arx_cc, bpf.words)) {
		bpf_log(log, "struct arx_cc is read-only at offset %d\n", off);
		return -EACCES;
	}
	return 0;
}

static const struct bpf_verifier_ops arx_bpf_verifier_ops = {
	.get_func_proto = bpf_base_func_proto,
	.is_valid_access = arx_bpf_is_valid_access,
	.btf_struct_access = arx_bpf_struct_access,
};

/* Functions are called with a lock held. */
static int arx_bpf_check_member(const struct btf_type *t,
				const struct btf_member *member,
				const struct bpf_prog *prog)
{
	return prog->sleepable ? -EINVAL : 0;
}

/* All members are functions, which the kernel copies. */
static int arx_bpf_init_member(const struct btf_type *t,
			       const struct btf_member *member, void *kdata,
			       const void *udata)
{
	return 0;
}

static int arx_bpf_reg(void *kdata, struct bpf_link *link)
{
	return arx_cc_bpf_replace(NULL, kdata);
}

static void arx_bpf_unreg(void *kdata, struct bpf_link *link)
{
	WARN_ON_ONCE(arx_cc_bpf_replace(kdata, NULL));
}

static int arx_bpf_update(void *kdata, void *old_kdata, struct bpf_link *link)
{
	return arx_cc_bpf_replace(old_kdata, kdata);
}

/*
 * The kernel takes the types of arguments, and what an indirect call checks
 * (CFI), from functions that look like those of programs. It never calls them.
 */
static struct bpf_struct_ops arx_bpf_struct_ops = {
	.verifier_ops = &arx_bpf_verifier_ops,
	.init = arx_bpf_struct_init,
	.check_member = arx_bpf_check_member,
	.init_member = arx_bpf_init_member,
	.reg = arx_bpf_reg,
	.unreg = arx_bpf_unreg,
	.update = arx_bpf_update,
	.cfi_stubs = (void *)&arx_cc_bpf_ops,
	.owner = THIS_MODULE,
	.name = "arx_cc_ops",
};

/* The kernel warns if a module without BTF registers a type. */
static bool arx_bpf_has_btf(void)
{
#ifdef MODULE
	return THIS_MODULE->btf_data_size;
#else
	return true;
#endif
}

/**
 * arx_bpf_init - let BPF programs be registered
 *
 * Without BTF, or if the kernel refuses, the module goes without programs. The
 * kernel forgets the type together with the module's BTF.
 *
 * Context: while the module is loaded.
 */
void arx_bpf_init(void)
{
	int err = -ENOENT;

	if (arx_bpf_has_btf())
		err = register_bpf_struct_ops(&arx_bpf_struct_ops, arx_cc_ops);
	/* Without usable BTF the kernel returns 0, too. */
	if (err || !arx_cc_bpf_able)
		pr_info("arx: no congestion control by BPF, for want of BTF (%d)\n",
			err);
}

#else

void arx_bpf_init(void)
{
}

#endif

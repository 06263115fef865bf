// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * On-demand paging: the page tables of regions whose pages are not pinned.
 *
 * A table has leaves, one for each 2 MiB (with pages of 4 KiB) of address space
 * that was used, so memory is paid for what is used, however long the region
 * is. An entry of a leaf has the kernel address of a page. The reference that
 * found the page is dropped at once: what keeps the page is that the kernel's
 * memory management asks the leaf (by an MMU notifier) before it takes the page
 * back.
 *
 * The data path reads entries in a section, without a lock:
 *
 *	section:	arx_odp_absent(): entries are present; uses the pages
 *	notifier:	marks entries absent, waits for all sections, clears
 *			the entries; the kernel may take the pages now
 *
 * A section that found an entry present has begun before the entry was marked,
 * so the notifier waits for the section. In that section the page may be used
 * to the end, whether or not the entry is marked meanwhile. So arx_odp_at()
 * takes marked entries, too, and no access is torn in its middle.
 *
 * The core's struct ib_umem_odp has an array for all of a region instead, which
 * nobody is charged for; and by hmm_range_fault() it finds also pages that are
 * not in the direct map (memfd_secret).
 */

#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "account.h"
#include "odp.h"
#include "section.h"

DEFINE_STATIC_KEY_FALSE(arx_odp_used);

#if IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING)

/* A leaf's entries fill one page. */
#define ARX_LEAF_PAGES	(PAGE_SIZE / sizeof(unsigned long))
#define ARX_LEAF_SIZE	(ARX_LEAF_PAGES * PAGE_SIZE)
#define ARX_LEAF_SHIFT	(PAGE_SHIFT + ilog2(ARX_LEAF_PAGES))

/* Bits of an entry, below the address of the page. */
#define ARX_PAGE_PRESENT	BIT(0)
#define ARX_PAGE_WRITABLE	BIT(1)

/* Unused leaves are not looked for among fewer leaves than this. */
#define ARX_LEAF_SCAN	64U

/* The process may change its memory this often while its pages are found. */
#define ARX_ODP_TRIES	16

/**
 * struct arx_leaf - the entries of a part of the address space
 * @ref: one of the table, and one of who fills the leaf
 * @odp: the table
 * @notifier: of its part of the address space
 * @lock: serialises changes of @entries
 * @ended: not in the table any more: no entry is filled
 * @entries: 0, or a page's address and bits. The notifier clears the bit
 *	ARX_PAGE_PRESENT first, and the entry when no section uses the page
 */
struct arx_leaf {
	refcount_t ref;
	struct arx_odp *odp;
	struct mmu_interval_notifier notifier;
	spinlock_t lock;	/* serialises changes of entries */
	bool ended;
	unsigned long *entries;
};

static void arx_leaf_put(struct arx_leaf *leaf)
{
	if (!refcount_dec_and_test(&leaf->ref))
		return;
	free_page((unsigned long)leaf->entries);
	kfree(leaf);
}

static u32 arx_leaf_index(u64 addr)
{
	return (addr >> PAGE_SHIFT) % ARX_LEAF_PAGES;
}

/*
 * Mark entries absent. True if there are any, or another CPU has marked some
 * and still waits: then this CPU must wait, too, before its caller may take the
 * pages.
 */
static bool arx_leaf_mark(struct arx_leaf *leaf, u32 first, u32 end)
{
	bool any = false;
	u32 i;

	lockdep_assert_held(&leaf->lock);
	for (i = first; i < end; i++) {
		unsigned long entry = leaf->entries[i];

		if (!entry)
			continue;
		any = true;
		WRITE_ONCE(leaf->entries[i], entry & ~ARX_PAGE_PRESENT);
	}
	return any;
}

/*
 * Clear marked entries, which no section uses any more. A page that may have
 * been written is dirty, whatever the page table of the process says.
 * set_page_dirty() prefers the page's lock, which some callers of notifiers
 * have and others do not; the notifier, which has not returned, keeps the page.
 */
static void arx_leaf_clear(struct arx_leaf *leaf, u32 first, u32 end)
{
	u32 cleared = 0;
	u32 i;

	lockdep_assert_held(&leaf->lock);
	for (i = first; i < end; i++) {
		unsigned long entry = leaf->entries[i];

		if (!entry || entry & ARX_PAGE_PRESENT)
			continue;
		if (entry & ARX_PAGE_WRITABLE)
			set_page_dirty(virt_to_page(entry));
		WRITE_ONCE(leaf->entries[i], 0);
		cleared++;
	}
	atomic64_add(cleared, &leaf->odp->invalidations);
}

/*
 * The process's pages in a range are about to change. Holds locks of the memory
 * management, at times those of reclaim: takes leaf->lock, under it what
 * set_page_dirty() takes, and allocates nothing. A caller that cannot sleep
 * (the OOM killer) goes on without pages that a section may use.
 */
static bool arx_leaf_invalidate(struct mmu_interval_notifier *notifier,
				const struct mmu_notifier_range *range,
				unsigned long seq)
{
	struct arx_leaf *leaf = container_of(notifier, struct arx_leaf,
					     notifier);
	u64 start = notifier->interval_tree.start;
	u64 last = notifier->interval_tree.last;
	u32 first = arx_leaf_index(max_t(u64, range->start, start));
	u32 end = arx_leaf_index(min_t(u64, range->end - 1, last)) + 1;
	bool used;

	spin_lock(&leaf->lock);
	mmu_interval_set_seq(notifier, seq);
	used = arx_leaf_mark(leaf, first, end);
	spin_unlock(&leaf->lock);
	if (!used)
		return true;
	if (mmu_notifier_range_blockable(range))
		arx_section_wait();
	else if (!arx_section_idle())
		return false;
	spin_lock(&leaf->lock);
	arx_leaf_clear(leaf, first, end);
	spin_unlock(&leaf->lock);
	return true;
}

static const struct mmu_interval_notifier_ops arx_leaf_ops = {
	.invalidate = arx_leaf_invalidate,
};

static struct arx_leaf *arx_leaf_alloc(struct arx_odp *odp)
{
	struct arx_leaf *leaf = kzalloc(sizeof(*leaf), GFP_KERNEL_ACCOUNT);

	if (!leaf)
		return NULL;
	leaf->entries = (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	if (!leaf->entries) {
		kfree(leaf);
		return NULL;
	}
	refcount_set(&leaf->ref, 1);
	leaf->odp = odp;
	spin_lock_init(&leaf->lock);
	return leaf;
}

/* Add a leaf; odp->lock held, and the mm has users. */
static struct arx_leaf *arx_leaf_add(struct arx_odp *odp, u64 addr)
{
	struct arx_leaf *leaf = arx_leaf_alloc(odp);
	int err;

	if (!leaf)
		return ERR_PTR(-ENOMEM);
	err = mmu_interval_notifier_insert(&leaf->notifier, odp->mm,
					   round_down(addr, ARX_LEAF_SIZE),
					   ARX_LEAF_SIZE, &arx_leaf_ops);
	if (err)
		goto put;
	err = xa_err(xa_store(&odp->leaves, addr >> ARX_LEAF_SHIFT, leaf,
			      GFP_KERNEL));
	if (err)
		goto remove;
	odp->count++;
	return leaf;
remove:
	mmu_interval_notifier_remove(&leaf->notifier);
put:
	arx_leaf_put(leaf);
	return ERR_PTR(err);
}

/*
 * End a leaf that is not in the table any more: a job that fills the leaf finds
 * it ended. No section uses the leaf.
 */
static void arx_leaf_end(struct arx_leaf *leaf)
{
	spin_lock(&leaf->lock);
	leaf->ended = true;
	arx_leaf_mark(leaf, 0, ARX_LEAF_PAGES);
	arx_leaf_clear(leaf, 0, ARX_LEAF_PAGES);
	spin_unlock(&leaf->lock);
	mmu_interval_notifier_remove(&leaf->notifier);
	arx_leaf_put(leaf);
}

/* True if no page of the leaf is in use. */
static bool arx_leaf_is_empty(const struct arx_leaf *leaf)
{
	return !memchr_inv(leaf->entries, 0, PAGE_SIZE);
}

/*
 * The address space of a region can be as long as that of its process, and the
 * process may use another part of it every day. When the leaves have doubled,
 * those without pages are removed. odp->lock held.
 */
static void arx_odp_scan(struct arx_odp *odp)
{
	struct arx_leaf *leaf;
	unsigned long index;

	if (odp->count < odp->scan_at)
		return;
	xa_for_each(&odp->leaves, index, leaf) {
		/* A job that fills the leaf has a reference. */
		if (refcount_read(&leaf->ref) > 1 || !arx_leaf_is_empty(leaf))
			continue;
		xa_erase(&odp->leaves, index);
		odp->count--;
		arx_section_wait();
		arx_leaf_end(leaf);
		cond_resched();
	}
	odp->scan_at = max(2 * odp->count, ARX_LEAF_SCAN);
}

/* The leaf of an address, with a reference, or an error. */
static struct arx_leaf *arx_odp_leaf(struct arx_odp *odp, u64 addr)
{
	struct arx_leaf *leaf;

	mutex_lock(&odp->lock);
	leaf = xa_load(&odp->leaves, addr >> ARX_LEAF_SHIFT);
	if (odp->ended) {
		leaf = ERR_PTR(-EFAULT);
	} else if (!leaf) {
		arx_odp_scan(odp);
		leaf = arx_leaf_add(odp, addr);
	}
	if (!IS_ERR(leaf))
		refcount_inc(&leaf->ref);
	mutex_unlock(&odp->lock);
	return leaf;
}

/**
 * arx_odp_make - page memory of the current process on demand
 * @start: address of the first byte
 * @length: bytes, any number; U64_MAX from address 0 on is the whole address
 *	space
 *
 * Context: process of the application.
 * Return: the memory, -EFAULT if the process has no such addresses, -ENOMEM.
 */
struct arx_odp *arx_odp_make(u64 start, u64 length)
{
	struct arx_odp *odp;
	u64 end;

	if ((start || length != U64_MAX) &&
	    (check_add_overflow(start, length, &end) ||
	     end > current->mm->task_size))
		return ERR_PTR(-EFAULT);
	odp = kzalloc(sizeof(*odp), GFP_KERNEL_ACCOUNT);
	if (!odp)
		return ERR_PTR(-ENOMEM);
	odp->user = arx_user_current();
	if (!odp->user) {
		kfree(odp);
		return ERR_PTR(-ENOMEM);
	}
	refcount_set(&odp->ref, 1);
	odp->mm = current->mm;
	mmgrab(odp->mm);
	odp->memcg = get_mem_cgroup_from_mm(odp->mm);
	odp->base = start & PAGE_MASK;
	xa_init_flags(&odp->leaves, XA_FLAGS_ACCOUNT);
	mutex_init(&odp->lock);
	odp->scan_at = ARX_LEAF_SCAN;
	static_branch_enable(&arx_odp_used);
	return odp;
}

/**
 * arx_odp_put - drop a reference
 * @odp: memory
 *
 * Context: may sleep.
 */
void arx_odp_put(struct arx_odp *odp)
{
	if (!refcount_dec_and_test(&odp->ref))
		return;
	xa_destroy(&odp->leaves);
	mem_cgroup_put(odp->memcg);
	mmdrop(odp->mm);
	arx_user_put(odp->user);
	kfree(odp);
}

/**
 * arx_odp_end - the region is gone
 * @odp: memory, which no section uses any more
 *
 * A job that waits for pages, perhaps for a program that serves the page faults
 * of another one, is not waited for: it finds no leaf any more.
 *
 * Context: may sleep.
 */
void arx_odp_end(struct arx_odp *odp)
{
	struct arx_leaf *leaf;
	unsigned long index;

	mutex_lock(&odp->lock);
	odp->ended = true;
	xa_for_each(&odp->leaves, index, leaf) {
		xa_erase(&odp->leaves, index);
		arx_leaf_end(leaf);
		cond_resched();
	}
	mutex_unlock(&odp->lock);
	arx_odp_put(odp);
}

/**
 * arx_odp_absent - whether pages must be found before they can be accessed
 * @odp: memory
 * @offset: of the first byte from the first page on
 * @len: bytes
 * @write: they will be written
 * @want: receives the part that is not there, from the first absent page on
 *
 * Context: in a section. If the function returns false, the pages can be
 * accessed by arx_odp_at() until the end of the section.
 * Return: true if at least one page is not there.
 */
bool arx_odp_absent(struct arx_odp *odp, u64 offset, u32 len, bool write,
		    struct arx_pages *want)
{
	unsigned long need = ARX_PAGE_PRESENT | (write ? ARX_PAGE_WRITABLE : 0);
	u64 addr = odp->base + offset;
	u64 end = addr + len;

	while (addr < end) {
		const struct arx_leaf *leaf =
			xa_load(&odp->leaves, addr >> ARX_LEAF_SHIFT);
		/* The last leaf ends at 2^64. */
		u64 stop = min(end - 1, addr | (ARX_LEAF_SIZE - 1)) + 1;

		for (; addr < stop; addr = (addr | ~PAGE_MASK) + 1) {
			if (leaf && (READ_ONCE(leaf->entries
					       [arx_leaf_index(addr)]) &
				     need) == need)
				continue;
			*want = (struct arx_pages) {
				.odp = odp,
				.addr = addr,
				.len = end - addr,
				.write = write,
			};
			return true;
		}
	}
	return false;
}

/**
 * arx_odp_at - address of a byte
 * @odp: memory
 * @offset: of the byte from the first page on
 * @len: bytes wanted; receives the number of contiguous bytes
 *
 * Context: in a section in which arx_odp_absent() has returned false for these
 * bytes.
 * Return: address, or NULL.
 */
void *arx_odp_at(struct arx_odp *odp, u64 offset, u32 *len)
{
	u64 addr = odp->base + offset;
	const struct arx_leaf *leaf = xa_load(&odp->leaves,
					      addr >> ARX_LEAF_SHIFT);
	u32 i = arx_leaf_index(addr);
	u32 have = PAGE_SIZE - offset_in_page(addr);
	unsigned long at;

	if (!leaf)
		return NULL;
	at = READ_ONCE(leaf->entries[i]) & PAGE_MASK;
	if (!at)
		return NULL;
	at += offset_in_page(addr);
	while (have < *len && ++i < ARX_LEAF_PAGES &&
	       (READ_ONCE(leaf->entries[i]) & PAGE_MASK) == at + have)
		have += PAGE_SIZE;
	*len = min(*len, have);
	return (void *)at;
}

/* References to pages that the process has mapped, or that it may fault in. */
static long arx_odp_get(struct arx_odp *odp, u64 addr, u32 n,
			struct page **pages, bool write, enum arx_odp_how how)
{
	unsigned int flags = write ? FOLL_WRITE : 0;
	int locked = 1;
	long got;

	if (how == ARX_ODP_PREFETCH_MAPPED)
		return current->mm != odp->mm ? 0 :
		       get_user_pages_fast_only(addr, n, flags, pages);
	mmap_read_lock(odp->mm);
	got = get_user_pages_remote(odp->mm, addr, n, flags, pages, &locked);
	if (locked)
		mmap_read_unlock(odp->mm);
	return got;
}

/*
 * Fill entries; -EAGAIN if the process has changed its memory since @seq,
 * -EFAULT if the region is gone.
 */
static int arx_leaf_fill(struct arx_leaf *leaf, u64 addr, u32 n,
			 struct page **pages, bool write, unsigned long seq)
{
	unsigned long bits = ARX_PAGE_PRESENT | (write ? ARX_PAGE_WRITABLE : 0);
	u32 first = arx_leaf_index(addr);
	int err = 0;
	u32 i;

	spin_lock(&leaf->lock);
	if (leaf->ended)
		err = -EFAULT;
	else if (mmu_interval_read_retry(&leaf->notifier, seq))
		err = -EAGAIN;
	for (i = 0; i < n && !err; i++) {
		unsigned long *entry = &leaf->entries[first + i];

		/* A page that can be written stays so. */
		WRITE_ONCE(*entry, (unsigned long)page_address(pages[i]) |
			   bits | (*entry & ARX_PAGE_WRITABLE));
	}
	spin_unlock(&leaf->lock);
	return err;
}

/* Find up to @n pages in one leaf. Returns their number or an error. */
static long arx_leaf_find(struct arx_leaf *leaf, u64 addr, u32 n,
			  struct page **pages, bool write, enum arx_odp_how how)
{
	int tries = ARX_ODP_TRIES;
	int err;

	do {
		unsigned long seq = mmu_interval_read_begin(&leaf->notifier);
		long got = arx_odp_get(leaf->odp, addr, n, pages, write, how);

		if (got <= 0)
			return got ? : -EFAULT;
		err = arx_leaf_fill(leaf, addr, got, pages, write, seq);
		release_pages(pages, got);
		if (!err)
			return got;
		cond_resched();
	} while (err == -EAGAIN && --tries);
	return err;
}

/* Find the pages of [addr, end) in one leaf; their number or an error. */
static long arx_odp_find_leaf(struct arx_odp *odp, u64 addr, u64 end,
			      struct page **pages, bool write,
			      enum arx_odp_how how)
{
	struct arx_leaf *leaf = arx_odp_leaf(odp, addr);
	u32 n = ARX_LEAF_PAGES - arx_leaf_index(addr);
	long got;

	if (IS_ERR(leaf))
		return PTR_ERR(leaf);
	n = min_t(u64, n, (end - addr) >> PAGE_SHIFT);
	got = arx_leaf_find(leaf, addr, n, pages, write, how);
	arx_leaf_put(leaf);
	return got;
}

/* arx_odp_find() of [addr, end); the mm has users. */
static int arx_odp_find_range(struct arx_odp *odp, u64 addr, u64 end,
			      bool write, enum arx_odp_how how)
{
	struct page **pages = (void *)__get_free_page(GFP_KERNEL);
	bool holes = how == ARX_ODP_PREFETCH_MAPPED;
	u64 found = 0;
	long got = 0;

	if (!pages)
		return -ENOMEM;
	for (; addr < end; addr += got << PAGE_SHIFT) {
		got = fatal_signal_pending(current) ? -EINTR :
		      arx_odp_find_leaf(odp, addr, end, pages, write, how);
		if (got == -EFAULT && holes)
			got = 1;
		else if (got > 0)
			found += got;
		else
			break;
		cond_resched();
	}
	free_page((unsigned long)pages);
	atomic64_add(found, how == ARX_ODP_FAULT ? &odp->faults :
						   &odp->prefetched);
	return found || got > 0 ? 0 : got;
}

/**
 * arx_odp_find - find pages, so that they can be accessed
 * @want: the pages; from the first one on they are found as far as they can be
 * @how: whether they may be brought in
 *
 * A page may be taken back at any time after, even before this returns.
 *
 * Context: may sleep, for as long as the memory takes (swap, a file on the
 * network, a program that serves page faults). ARX_ODP_PREFETCH_MAPPED finds
 * nothing in another process than that whose memory it is.
 * Return: 0; -EFAULT if the first page cannot be accessed so, or the region or
 * its process is gone; -ENOMEM; -EINTR if a signal ends the process; -EAGAIN if
 * the process keeps changing its memory.
 */
int arx_odp_find(const struct arx_pages *want, enum arx_odp_how how)
{
	struct arx_odp *odp = want->odp;
	u64 most = odp->mm->task_size;
	struct mem_cgroup *old;
	u64 end;
	int err;

	if (want->addr >= most || !mmget_not_zero(odp->mm))
		return -EFAULT;
	end = want->addr + min(want->len, most - want->addr);
	old = set_active_memcg(odp->memcg);
	err = arx_odp_find_range(odp, want->addr & PAGE_MASK, PAGE_ALIGN(end),
				 want->write, how);
	set_active_memcg(old);
	mmput(odp->mm);
	return err;
}

#else /* CONFIG_INFINIBAND_ON_DEMAND_PAGING */

struct arx_odp *arx_odp_make(u64 start, u64 length)
{
	return ERR_PTR(-EOPNOTSUPP);
}

void arx_odp_put(struct arx_odp *odp)
{
}

void arx_odp_end(struct arx_odp *odp)
{
}

bool arx_odp_absent(struct arx_odp *odp, u64 offset, u32 len, bool write,
		    struct arx_pages *want)
{
	return false;
}

void *arx_odp_at(struct arx_odp *odp, u64 offset, u32 *len)
{
	return NULL;
}

int arx_odp_find(const struct arx_pages *want, enum arx_odp_how how)
{
	return -EOPNOTSUPP;
}

#endif /* CONFIG_INFINIBAND_ON_DEMAND_PAGING */

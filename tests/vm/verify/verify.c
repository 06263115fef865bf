// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * verify -a NETNS[:DEVICE] -b NETNS[:DEVICE] [-f FACTOR] [-v] CASE...
 *
 * Starts one process in each network namespace ("" is the caller's own; both
 * may be the same host) and runs the cases:
 *
 *	'NAME: key=value,value... key=value...'	flows, once for each combination
 *	'NAME: fail=NAME,NAME... [key=value]'	cases of fail.c; fail=all
 *
 * Prints "ok NAME", "skip NAME: reason" or "not ok NAME: why" for each; exits
 * with 1 if any was not ok. FACTOR: times are for a machine so much slower than
 * real hardware (default 1; software CPUs: 4).
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "verify.h"

int side;
int time_factor = 1;
static bool verbose;

/* ---- verdicts ---- */

struct verdict {
	char why[240];
	bool failed;
	bool skipped;
};

static struct verdict verdict;

static void set_reason(const char *format, va_list args)
{
	vsnprintf(verdict.why, sizeof(verdict.why), format, args);
}

bool failed(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (!verdict.failed)
		set_reason(format, args);
	va_end(args);
	verdict.failed = true;
	return false;
}

bool has_failed(void)
{
	return verdict.failed;
}

bool skipped(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (!verdict.failed && !verdict.skipped)
		set_reason(format, args);
	va_end(args);
	verdict.skipped = true;
	return false;
}

/* ---- parameters ---- */

enum { KIND_NUMBER, KIND_QP, KIND_OP, KIND_GID };

/* In the order of struct parameters' values. */
enum key {
	P_QP,
	P_OP,
	P_GID,
	P_MTU,
	P_SIZE,
	P_VARY,
	P_COUNT,
	P_QPS,
	P_WINDOW,
	P_LIST,
	P_SGE,
	P_RSGE,
	P_INLINE,
	P_SIGNAL,
	P_SRQ,
	P_EVENTS,
	P_BOTH,
	P_RNR,
	P_LOSSY,
	P_PSN,
	P_TIMEOUT,
	P_RETRY,
	P_RNR_RETRY,
	P_RNR_TIMER,
	P_RD_ATOMIC,
	P_SLOW,
	P_LIMIT,
	P_SPOIL,
	P_ODP,
	P_UPSET,
	P_SECONDS,
	P_TCLASS,
	NUM_KEYS
};

static const struct {
	const char *name;
	int kind;
	uint64_t value;
} keys[NUM_KEYS] = {
	[P_QP] = { "qp", KIND_QP, IBV_QPT_RC },
	[P_OP] = { "op", KIND_OP, OP_SEND },
	[P_GID] = { "gid", KIND_GID, GID_V4 },
	[P_MTU] = { "mtu", KIND_NUMBER, 0 },
	[P_SIZE] = { "size", KIND_NUMBER, 4096 },
	[P_VARY] = { "vary", KIND_NUMBER, 0 },
	[P_COUNT] = { "count", KIND_NUMBER, 64 },
	[P_QPS] = { "qps", KIND_NUMBER, 1 },
	[P_WINDOW] = { "window", KIND_NUMBER, 16 },
	[P_LIST] = { "list", KIND_NUMBER, 1 },
	[P_SGE] = { "sge", KIND_NUMBER, 1 },
	[P_RSGE] = { "rsge", KIND_NUMBER, 1 },
	[P_INLINE] = { "inline", KIND_NUMBER, 0 },
	[P_SIGNAL] = { "signal", KIND_NUMBER, 1 },
	[P_SRQ] = { "srq", KIND_NUMBER, 0 },
	[P_EVENTS] = { "events", KIND_NUMBER, 0 },
	[P_BOTH] = { "both", KIND_NUMBER, 0 },
	[P_RNR] = { "rnr", KIND_NUMBER, 0 },
	[P_LOSSY] = { "lossy", KIND_NUMBER, 0 },
	[P_PSN] = { "psn", KIND_NUMBER, 0 },
	[P_TIMEOUT] = { "timeout", KIND_NUMBER, 14 },
	[P_RETRY] = { "retry", KIND_NUMBER, 7 },
	[P_RNR_RETRY] = { "rnr_retry", KIND_NUMBER, 7 },
	[P_RNR_TIMER] = { "rnr_timer", KIND_NUMBER, 1 },
	[P_RD_ATOMIC] = { "rd_atomic", KIND_NUMBER, 16 },
	[P_SLOW] = { "slow", KIND_NUMBER, 0 },
	[P_LIMIT] = { "limit", KIND_NUMBER, 10 },
	[P_SPOIL] = { "spoil", KIND_NUMBER, 0 },
	[P_ODP] = { "odp", KIND_NUMBER, 0 },
	[P_UPSET] = { "upset", KIND_NUMBER, 0 },
	[P_SECONDS] = { "seconds", KIND_NUMBER, 0 }, /* repeat for this time */
	[P_TCLASS] = { "tclass", KIND_NUMBER, 0 },
};

static const struct {
	int kind;
	const char *word;
	uint64_t value;
} words[] = {
	{ KIND_QP, "rc", IBV_QPT_RC },
	{ KIND_QP, "uc", IBV_QPT_UC },
	{ KIND_QP, "ud", IBV_QPT_UD },
	{ KIND_OP, "send", OP_SEND },
	{ KIND_OP, "send_imm", OP_SEND_IMM },
	{ KIND_OP, "write", OP_WRITE },
	{ KIND_OP, "write_imm", OP_WRITE_IMM },
	{ KIND_OP, "read", OP_READ },
	{ KIND_OP, "cas", OP_CAS },
	{ KIND_OP, "faa", OP_FAA },
	{ KIND_OP, "mix", OP_MIX },
	{ KIND_GID, "v4", GID_V4 },
	{ KIND_GID, "v6", GID_V6 },
	{ KIND_GID, "ll", GID_LL },
};

static void usage(const char *what, const char *which)
{
	fprintf(stderr, "verify: %s: %s\n", what, which);
	exit(2);
}

static uint64_t value_of(int kind, const char *text)
{
	uint64_t value;
	char *end;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i].kind == kind && !strcmp(words[i].word, text))
			return words[i].value;
	value = strtoull(text, &end, 0);
	switch (*end) {
	case 'K':
		return value << 10;
	case 'M':
		return value << 20;
	case 'G':
		return value << 30;
	}
	if (kind != KIND_NUMBER || *end || end == text)
		usage("what value is this", text);
	return value;
}

static const char *text_of(int kind, uint64_t value)
{
	static char number[24];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i].kind == kind && words[i].value == value)
			return words[i].word;
	snprintf(number, sizeof(number), "%llu", (unsigned long long)value);
	return number;
}

/* ---- a case and its combinations ---- */

#define MAX_VALUES 64

struct spec {
	char name[80];
	uint64_t values[NUM_KEYS][MAX_VALUES];
	uint32_t count[NUM_KEYS];
	const char *fail;	/* names of fail cases, or NULL for flows */
};

static void parse_values(struct spec *spec, int key, char *list)
{
	char *save, *text;

	spec->count[key] = 0;
	for (text = strtok_r(list, ",", &save); text;
	     text = strtok_r(NULL, ",", &save)) {
		if (spec->count[key] == MAX_VALUES)
			usage("too many values", keys[key].name);
		spec->values[key][spec->count[key]++] =
			value_of(keys[key].kind, text);
	}
}

static void parse_spec(struct spec *spec, char *text)
{
	char *colon = strchr(text, ':'), *save, *word, *equals;
	int key;

	if (!colon)
		usage("no name", text);
	memset(spec, 0, sizeof(*spec));
	snprintf(spec->name, sizeof(spec->name), "%.*s", (int)(colon - text),
		 text);
	for (key = 0; key < NUM_KEYS; key++) {
		spec->values[key][0] = keys[key].value;
		spec->count[key] = 1;
	}
	for (word = strtok_r(colon + 1, " \t\n", &save); word;
	     word = strtok_r(NULL, " \t\n", &save)) {
		equals = strchr(word, '=');
		if (!equals)
			usage("no value", word);
		*equals = 0;
		if (!strcmp(word, "fail")) {
			spec->fail = equals + 1;
			continue;
		}
		for (key = 0; key < NUM_KEYS && strcmp(keys[key].name, word);
		     key++)
			;
		if (key == NUM_KEYS)
			usage("no such key", word);
		parse_values(spec, key, equals + 1);
	}
}

static struct config make_config(const struct spec *spec, const uint32_t *index)
{
	uint64_t v[NUM_KEYS];
	struct config c;
	int key;

	for (key = 0; key < NUM_KEYS; key++)
		v[key] = spec->values[key][index[key]];
	c = (struct config){
		.qp = v[P_QP],
		.op = v[P_OP],
		.gid = v[P_GID],
		.mtu = v[P_MTU],
		.size = v[P_SIZE],
		.vary = v[P_VARY],
		.count = max_u64(v[P_COUNT], 1),
		.qps = max_u64(min_u64(v[P_QPS], MAX_QPS), 1),
		.window = max_u64(v[P_WINDOW], 1),
		.list = max_u64(min_u64(v[P_LIST], MAX_LIST), 1),
		.sge = max_u64(min_u64(v[P_SGE], MAX_SGE), 1),
		.rsge = max_u64(min_u64(v[P_RSGE], MAX_SGE), 1),
		.inl = v[P_INLINE],
		.srq = v[P_SRQ],
		.events = v[P_EVENTS],
		.both = v[P_BOTH],
		.rnr = v[P_RNR],
		.lossy = v[P_LOSSY],
		.psn = v[P_PSN],
		.timeout = v[P_TIMEOUT],
		.retry = v[P_RETRY],
		.rnr_retry = v[P_RNR_RETRY],
		.rnr_timer = v[P_RNR_TIMER],
		.rd_atomic = v[P_RD_ATOMIC],
		.slow = v[P_SLOW],
		.limit = v[P_LIMIT],
		.spoil = v[P_SPOIL],
		.odp = v[P_ODP],
		.upset = v[P_UPSET],
		.tclass = v[P_TCLASS],
	};
	/* Something must be signalled before the send queue is full. */
	c.signal = max_u64(min_u64(v[P_SIGNAL], c.window), 1);
	return c;
}

/* The values of the keys in the case, for a failure's message. */
static void describe(const struct spec *spec, const uint32_t *index, char *to,
		     size_t len)
{
	size_t used = 0;
	int key;

	to[0] = 0;
	for (key = 0; key < NUM_KEYS && used < len; key++)
		if (spec->count[key] > 1)
			used += snprintf(
				to + used, len - used, " %s=%s", keys[key].name,
				text_of(keys[key].kind,
					spec->values[key][index[key]]));
}

/* The next combination; false after the last. */
static bool advance_index(const struct spec *spec, uint32_t *index)
{
	int key;

	for (key = NUM_KEYS - 1; key >= 0; key--) {
		if (++index[key] < spec->count[key])
			return true;
		index[key] = 0;
	}
	return false;
}

static const char *impossible(const struct config *c)
{
	uint32_t mtu = 128u << port.active_mtu;

	if (gid_index(c->gid) < 0)
		return "no GID of this kind";
	if (c->mtu > mtu)
		return "the port's MTU is smaller";
	if (c->qp == IBV_QPT_UD && c->size > (c->mtu ? c->mtu : mtu))
		return "longer than a datagram";
	if (c->sge > (uint32_t)device.max_sge ||
	    c->rsge > (uint32_t)device.max_sge)
		return "more SGEs than the device has";
	if (c->size > port.max_msg_sz)
		return "longer than the port's longest message";
	return NULL;
}

struct tally {
	int done, skipped;
	char why[480];
	bool failed;
	double start;
};

/* One combination on both sides; the side that failed reports why. */
static void run_one(const struct spec *spec, const uint32_t *index,
		    const struct fail_case *fail, struct tally *tally)
{
	struct config c = make_config(spec, index);
	const char *why = fail ? NULL : impossible(&c);
	struct verdict theirs;
	char which[160];
	double start = now();
	bool can = !why, they_can;

	memset(&verdict, 0, sizeof(verdict));
	region_paging = c.odp;
	ctl_swap(&can, &they_can, sizeof(can));
	if (!can)
		/* scripts never ask for what their nodes cannot do */
		failed("%s", why);
	if (can && they_can)
		fail ? fail->run(&c) : flow_case(&c);
	ctl_swap(&verdict, &theirs, sizeof(verdict));
	describe(spec, index, which, sizeof(which));
	if (verbose && side == 0)
		printf("#   %s%s%s: %.2f s\n", spec->name, fail ? " " : "",
		       fail ? fail->name : which, now() - start);
	if (verdict.failed || theirs.failed) {
		snprintf(tally->why, sizeof(tally->why), "%s%sside %c: %s",
			 which[0] ? which + 1 : "", which[0] ? ": " : "",
			 verdict.failed ? 'A' + side : 'B' - side,
			 verdict.failed ? verdict.why : theirs.why);
		tally->failed = true;
	} else if (verdict.skipped || theirs.skipped) {
		if (!tally->skipped++)
			snprintf(tally->why, sizeof(tally->why), "%s",
				 verdict.skipped ? verdict.why : theirs.why);
	} else {
		tally->done++;
	}
}

static bool report(const char *name, const struct tally *tally)
{
	double seconds = now() - tally->start;

	if (side)
		return !tally->failed;
	if (tally->failed)
		printf("not ok %s: %s\n", name, tally->why);
	else if (!tally->done)
		printf("skip %s: %s\n", name, tally->why);
	else if (tally->skipped)
		printf("ok %s (%d, %d left out: %s; %.1f s)\n", name,
		       tally->done, tally->skipped, tally->why, seconds);
	else
		printf("ok %s (%d; %.1f s)\n", name, tally->done, seconds);
	fflush(stdout);
	return !tally->failed;
}

static bool named(const char *list, const char *name)
{
	size_t len = strlen(name);
	const char *at;

	if (!strcmp(list, "all"))
		return strcmp(name, "cut_off") && strcmp(name, "device_gone") &&
		       /* they need the script's help */
		       strcmp(name, "memory_back") &&
		       !strstr(name, "buffer_") &&
		       strcmp(name, "two_cpus"); /* and this one a second CPU */
	for (at = strstr(list, name); at; at = strstr(at + 1, name))
		if ((at == list || at[-1] == ',') &&
		    (!at[len] || at[len] == ','))
			return true;
	return false;
}

/* Each case of fail.c is a test of its own. */
static bool run_fail_cases(const struct spec *spec)
{
	const struct fail_case *fail;
	uint32_t index[NUM_KEYS] = {};
	char name[sizeof(spec->name) + 40];
	bool ok = true, any = false;
	struct tally tally;

	for (fail = fail_cases; fail < fail_cases + num_fail_cases; fail++) {
		if (!named(spec->fail, fail->name))
			continue;
		any = true;
		tally = (struct tally){ .start = now() };
		run_one(spec, index, fail, &tally);
		if (verbose)
			outcome(fail->name);
		snprintf(name, sizeof(name), "%s/%s", spec->name, fail->name);
		ok &= report(name, &tally);
	}
	if (!any)
		usage("no such fail case", spec->fail);
	return ok;
}

/* The first side's clock decides. */
static bool time_left(const struct spec *spec, const struct tally *tally)
{
	bool mine = !tally->failed && !tally->skipped &&
		    now() - tally->start < spec->values[P_SECONDS][0],
	     theirs;

	ctl_swap(&mine, &theirs, sizeof(mine));
	return side ? theirs : mine;
}

static bool run_spec(char *text)
{
	uint32_t index[NUM_KEYS] = {};
	struct tally tally = { .start = now() };
	struct spec spec;

	parse_spec(&spec, text);
	if (spec.fail)
		return run_fail_cases(&spec);
	do {
		memset(index, 0, sizeof(index));
		do
			run_one(&spec, index, NULL, &tally);
		while (!tally.failed && advance_index(&spec, index));
	} while (time_left(&spec, &tally));
	return report(spec.name, &tally);
}

/* ---- the two processes ---- */

#define MAX_ARGS 500

static int run_side(const char *name, char **specs)
{
	bool ok = true, opened, theirs;

	/*
	 * Later mappings have other addresses than those of the other side: use
	 * of an address of the wrong side is detected.
	 */
	if (side)
		mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	opened = device_open(name);
	if (!opened)
		printf("not ok verify: side %c: %s\n", 'A' + side, verdict.why);
	fflush(stdout);
	ctl_swap(&opened, &theirs, sizeof(opened));
	if (!opened || !theirs)
		return 1;
	for (; *specs; specs++)
		ok &= run_spec(*specs);
	ibv_close_device(context);
	return !ok;
}

static pid_t start_side(int which, const char *place, int fd, char **argv)
{
	char netns[64], self[256], number[3][12];
	const char *device = strchr(place, ':');
	char *args[MAX_ARGS + 1] = { "ip", "netns",   "exec", netns,	self,
				     "-s", number[0], "-c",   number[1] };
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int from = 9, i;
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	self[len] = 0;
	snprintf(netns, sizeof(netns), "%.*s", (int)strcspn(place, ":"), place);
	snprintf(number[0], sizeof(number[0]), "%d", which);
	snprintf(number[1], sizeof(number[1]), "%d", fd);
	if (device) {
		args[from++] = "-d";
		args[from++] = (char *)device + 1;
	}
	snprintf(number[2], sizeof(number[2]), "%d", time_factor);
	args[from++] = "-f";
	args[from++] = number[2];
	if (verbose)
		args[from++] = "-v";
	for (i = 0; argv[i] && from < MAX_ARGS; i++)
		args[from++] = argv[i];
	if (argv[i])
		usage("too many arguments", argv[i]);
	execvp(netns[0] ? "ip" : self, netns[0] ? args : args + 4);
	perror("verify: ip netns exec");
	_exit(127);
}

/* 0 if both sides succeeded. */
static int wait_sides(void)
{
	int i, status, bad = 0;

	for (i = 0; i < 2; i++) {
		if (wait(&status) < 0)
			return 1;
		if (WIFSIGNALED(status))
			printf("not ok verify: a side was killed by signal %d\n",
			       WTERMSIG(status));
		bad |= status;
	}
	return !!bad;
}

static int run_both(const char *const place[2], char **argv)
{
	int fds[2], i;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds)) {
		perror("verify: socketpair");
		return 1;
	}
	/*
	 * No side holds the other's end, so it notices at once that the other
	 * died.
	 */
	for (i = 0; i < 2; i++) {
		fcntl(fds[!i], F_SETFD, FD_CLOEXEC);
		fcntl(fds[i], F_SETFD, 0);
		start_side(i, place[i], fds[i], argv);
	}
	close(fds[0]);
	close(fds[1]);
	return wait_sides();
}

int main(int argc, char **argv)
{
	const char *place[2] = { "", "" }, *name = NULL;
	/*
	 * Both sides write to one file: the longest line must leave in one
	 * piece. Without a buffer of ours glibc ignores the size.
	 */
	static char out[16384];
	int option;

	setvbuf(stdout, out, _IOLBF, sizeof(out));
	signal(SIGPIPE, SIG_IGN);
	while ((option = getopt(argc, argv, "+a:b:c:d:f:s:v")) != -1) {
		switch (option) {
		case 'a':
		case 'b':
			place[option - 'a'] = optarg;
			break;
		case 'c':
			ctl_fd = atoi(optarg);
			break;
		case 'd':
			name = optarg;
			break;
		case 'f':
			time_factor = max_u64(atoi(optarg), 1);
			break;
		case 's':
			side = atoi(optarg);
			break;
		case 'v':
			verbose = true;
			break;
		default:
			return 2;
		}
	}
	if (optind == argc)
		usage("no case", "see the head of verify.c");
	if (ctl_fd < 0)
		return run_both(place, argv + optind);
	return run_side(name, argv + optind);
}

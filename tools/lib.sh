# shellcheck shell=bash
# Sourced by the tools: paths, and how a tree of layers is mounted.
#
# The cache holds layers, directories that overlayfs stacks: a Debian root, one
# layer for each kernel, one for packages that only tests need. A stack of
# layers is the chroot in which everything is compiled and the root of the
# machines.

set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${ARX_CACHE:-/var/cache/arx}
# mount point of a stack, in a mount namespace of its own
tree=$cache/tree

say() { printf 'arx: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# host_command COMMAND PACKAGE: install a missing command on this machine by
# apt.
host_command() {
	command -v "$1" >/dev/null && return
	say "installing $2"
	{
		apt-get -q update &&
			apt-get -qy install --no-install-recommends "$2"
	} >&2
}

# Set $qemu, the command for QEMU: this host's, or Debian trixie's, which runs
# without a chroot, with the libraries of its layers.
find_qemu() {
	local own root lib=usr/lib/x86_64-linux-gnu
	case ${ARX_QEMU:-host} in
	host)
		host_command qemu-system-x86_64 qemu-system-x86
		qemu=(qemu-system-x86_64);;
	trixie)
		"$top/tools/cache" qemu >/dev/null
		own=$("$top/tools/cache" --where qemu)
		root=$("$top/tools/cache" --where root)
		qemu=(env "QEMU_MODULE_DIR=$own/$lib/qemu"
			"$root/$lib/ld-linux-x86-64.so.2"
			--library-path "$own/$lib:$root/$lib"
			"$own/usr/bin/qemu-system-x86_64"
			-L "$own/usr/share/qemu" -L "$own/usr/share/seabios"
			-L "$own/usr/lib/ipxe/qemu");;
	*) die "which QEMU is $ARX_QEMU?";;
	esac
}

# describe_host KERNEL: what a bench's machine for that kernel runs on
describe_host() {
	local load model
	read -r load _ </proc/loadavg
	model=$(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -n 1)
	printf '%s, %s CPUs, %s, load %s at the start' \
		"$model" "$(nproc)" "$(uname -m)" "$load"
	[[ $1 != uml ]] || return 0
	find_qemu
	printf ', %s' "$("${qemu[@]}" --version | head -n 1)"
}

# Continue the calling script, given as "$@", in mount and PID namespaces of its
# own. Its mounts and all processes that it started disappear with the script,
# however it ends.
own_namespaces() {
	[[ ${1-} != --own-namespaces ]] || return 0
	(( EUID == 0 )) ||
		die "$(basename "$0") needs root: it mounts file systems (the cache is $cache)"
	exec unshare --mount --propagation private --pid --fork \
		--kill-child --mount-proc "$0" --own-namespaces "$@"
}

# Run a command and wait for it, so that a signal ends the namespaces at once.
# (The shell is PID 1 there and would get no signals without handlers.)
run() {
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	"$@" <&0 &
	wait $!
}

# mount_tree UPPER LAYER...: mount the layers, topmost first, at $tree; writes
# go to the directory UPPER, to memory (-), or nowhere ('').
mount_tree() {
	local upper=$1 lower options
	shift
	lower=$(IFS=:; echo "$*")
	mkdir -p "$tree" "$cache/empty"
	options=lowerdir=$lower:$cache/empty
	if [[ $upper == - ]]; then
		mount -t tmpfs -o mode=0755 tmpfs "$tree"
		upper=$tree/upper
	fi
	if [[ $upper ]]; then
		mkdir -p "$upper" "$upper.work"
		options+=,upperdir=$upper,workdir=$upper.work
	fi
	mount -t overlay -o "$options" overlay "$tree"
}

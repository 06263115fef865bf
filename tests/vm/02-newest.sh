#!/bin/bash
# tools/newest and tools/cache follow Debian's kernels. A repository of empty
# packages replaces Debian; this machine's own root replaces the chroot in which
# apt is asked.
# kernels: uml
# timeout: 200

source "$(dirname "$0")/lib.sh"

unset ARX_NEWEST
export ARX_CACHE=/srv/cache
cache=/arx/tools/cache

# debian PACKAGE...: all packages that Debian has
debian() {
	mkdir -p /srv/debian
	# shellcheck disable=SC2048,SC2086
	printf 'Package: %s\nVersion: 1\nArchitecture: amd64\nFilename: none\nSize: 0\nDescription: none\n\n' $* >/srv/debian/Packages
	rm -f /etc/apt/sources.list.d/*
	echo 'deb [trusted=yes] file:/srv/debian ./' >/etc/apt/sources.list
}

image() { echo "linux-image-$1+deb13-amd64 linux-headers-$1+deb13-amd64"; }

# answers WANTED: the answer to Debian's present packages
answers() {
	apt-get -q update
	[[ $(/arx/tools/newest) == "$1" ]] ||
		{ echo "said: $(/arx/tools/newest)"; return 1; }
}

newest_of_several() {
	debian "$(image 6.12.118)" "$(image 7.2.12)" "$(image 7.3.4)" \
		linux-source-6.12 linux-source-7.2 linux-source-7.3
	answers '7.3 7.3'
}

numbers_not_letters() {
	debian "$(image 7.9.3)" "$(image 7.10.1)" linux-source-7.9 \
		linux-source-7.10
	answers '7.10 7.10'
}

other_flavours() {
	debian "$(image 7.3.4)" linux-image-7.4.1+deb13-rt-amd64 \
		linux-image-7.4.1+deb13-cloud-amd64 linux-image-7.4~rc1-amd64 \
		linux-image-amd64 linux-headers-7.4.1+deb13-amd64 linux-source \
		linux-source-7.3 linux-source-7.4x
	answers '7.3 7.3'
}

# Debian leaves such images: without packages to build modules for them.
image_without_headers() {
	debian "$(image 7.3.4)" linux-image-7.4.1+deb13-amd64 linux-source-7.3 \
		linux-source-7.4
	answers '7.3 7.4'
}

point_releases() {
	debian "$(image 6.12.9)" "$(image 6.12.118)" \
		linux-image-6.12.120+deb13-amd64 linux-source-7.3
	apt-get -q update
	[[ $(/arx/tools/newest --releases \
		6.12) == $'6.12.9+deb13-amd64\n6.12.118+deb13-amd64' ]]
	[[ ! $(/arx/tools/newest --releases 6.1) &&
		! $(/arx/tools/newest --releases 6.12-rt) ]]
}

source_lags() {
	debian "$(image 7.3.4)" "$(image 7.4.1)" linux-source-7.3
	answers '7.4 7.3'
}

nothing() {
	debian hello
	apt-get -q update
	not /arx/tools/newest 2>&1 | finds 'apt knows no kernel'
}

# has LAYER: the layer exists
has() { mkdir -p "$("$cache" --where "$1")"; }

# apt is asked in this machine's own root.
a_root() {
	mkdir -p /srv/cache
	mount -t tmpfs tmpfs /srv/cache
	has root
	mount --bind / "$("$cache" --where root)"
}

fresh_machine_gets_the_next() {
	debian "$(image 7.3.4)" linux-source-7.3
	rm -f /srv/cache/newest
	"$cache" --renew
	[[ $(cat /srv/cache/newest) == '7.3 7.3' &&
		$("$cache" --series newest) == 7.3 ]]
	[[ $("$cache" --where \
		kernel-newest) == "$("$cache" --where kernel-7.3)" ]]
	[[ $("$cache" --series newest-rt) == 7.3-rt &&
		$("$cache" --series uml) == uml ]]
}

# A machine that knows 7.2, has no layer of it, and asks when 7.2 is gone. (It
# fails because 7.3 cannot be had, either.)
gone_before_it_came() {
	debian "$(image 7.3.4)" linux-source-7.3
	echo '7.2 7.2' >/srv/cache/newest
	not "$cache" kernel-newest
	[[ $(cat /srv/cache/newest) == '7.3 7.3' ]]
}

cached_and_gone() {
	debian "$(image 7.3.4)" linux-source-7.3
	echo '7.2 7.2' >/srv/cache/newest
	has kernel-newest
	[[ $("$cache" kernel-newest) == */kernel-7.2-* &&
		$(cat /srv/cache/newest) == '7.2 7.2' ]]
	[[ $("$cache" kernel-7.2) == */kernel-7.2-* ]]
}

renewed_after_a_day() {
	cached_and_gone
	"$cache" --renew
	[[ $(cat /srv/cache/newest) == '7.2 7.2' ]]
	touch -d '2 days ago' /srv/cache/newest
	"$cache" --renew
	[[ $(cat /srv/cache/newest) == '7.3 7.3' ]]
}

apt_does_not_answer() {
	debian hello
	echo '7.2 7.2' >/srv/cache/newest
	touch -d '2 days ago' /srv/cache/newest
	has kernel-newest
	"$cache" --renew 2>&1 | finds '7.2, as when it was asked last'
	[[ $("$cache" kernel-newest) == */kernel-7.2-* ]]
	rm /srv/cache/newest
	not "$cache" --renew
}

# The debug kernel changes with its source only.
debug_kernel_follows_its_source() {
	local before after
	before=$(ARX_NEWEST='7.3 7.3' "$cache" --where kernel-uml)
	after=$(ARX_NEWEST='7.4 7.4' "$cache" --where kernel-uml)
	[[ $before != "$after" &&
		$(ARX_NEWEST='7.4 7.3' "$cache" \
		--where kernel-uml) == "$before" ]]
}

unknown_series() {
	debian "$(image 7.3.4)" linux-source-7.3
	not "$cache" kernel-7.2x
	not "$cache" kernel-7.1 2>&1 |
		finds 'Debian has no kernel 7.1 any more, or never had'
}

for case in newest_of_several numbers_not_letters other_flavours \
	image_without_headers point_releases source_lags nothing; do check \
	$case 30 $case; done
a_root
for case in fresh_machine_gets_the_next gone_before_it_came cached_and_gone \
	renewed_after_a_day apt_does_not_answer \
	debug_kernel_follows_its_source unknown_series; do
	rm -rf /srv/cache/kernel-*
	check $case 60 $case
done

# arx: an RDMA driver for any Ethernet device, and its rdma-core provider.
#
## make                 the module and the provider
## make module          for the running kernel, or KDIR=DIR: build/<kernel release>/arx.ko
## make provider        for the installed rdma-core: build/provider/
## make install         both, the tools and manual pages, to DESTDIR; make uninstall removes them
## make dist            build/dist/arx-VERSION.tar.gz
## make clean
##
## As root, in a chroot and in machines of its own (see tools/README):
## make demo            two hosts and what well-known programs say on them
## make test            the tests; make test-full leaves nothing out
## make shell           a shell in a machine with both hosts up
## make vm CMD='...'    a command in a machine; its exit status
## make bench           arx beside its peers
## make bench-network   the same over networks that lose packets or are crowded
## make check           static checks
## make arm64           arx on an emulated machine of arm64: pingpongs
## make deb             Debian packages in build/deb; make rpm: RPM packages in build/rpm
## make html            the documentation's pages in build/html
## make applications    the table of Documentation/applications.rst, from the results of the last tests
## make check-packages  install, use, upgrade and remove the packages in a chroot and a machine
## make upstream        patches for the kernel's source and for rdma-core in build/upstream
## KERNEL=6.12|newest|uml  which kernel a machine runs; SHARE=DIR is /share there, TIMEOUT=SECONDS its limit

KDIR ?= /lib/modules/$(shell uname -r)/build
KERNEL ?= newest
TIMEOUT ?= 600
BUILD ?= $(CURDIR)/build
version := $(shell sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)

# A kernel's tree knows its release, and its architecture if that is User-Mode Linux.
kernel_make = $(MAKE) -C $(KDIR) $(if $(shell grep -s ^CONFIG_UML=y $(KDIR)/.config),ARCH=um)
release := $(shell $(kernel_make) -s --no-print-directory kernelrelease 2>/dev/null)
release_or_error = $(or $(release),$(error no kernel headers at $(KDIR): install them, or name others by KDIR=))
vm = tools/vm run --kernel $(KERNEL) --timeout $(TIMEOUT)

all: module provider

# Kbuild writes beside its sources, so it is shown links to them, in a directory for each kernel.
module:
	@mkdir -p $(BUILD)/$(release_or_error)/source
	@flock $(BUILD)/$(release) $(MAKE) --no-print-directory module-locked

module-locked: dir = $(BUILD)/$(release)
module-locked:
	@find $(dir)/source -xtype l -delete
	@cp -rsf $(wildcard $(addprefix $(CURDIR)/,Kbuild drivers include tests)) $(dir)/source/
	$(kernel_make) M=$(dir)/source $(KBUILD_FLAGS) modules
	@find $(dir)/source -name '*.ko' -exec cp -t $(dir) {} +

provider:
	tools/provider

install: module provider install-tools
	install -D -m 644 -t "$(DESTDIR)/lib/modules/$(release_or_error)/updates" $(BUILD)/$(release)/arx.ko
	$(if $(DESTDIR),,depmod $(release))
	tools/provider --install "$(DESTDIR)"

tool = install -D -m $(1) -t "$(DESTDIR)$(2)" $(addprefix userspace/tools/,$(3))
tools_doc := /usr/share/doc/arx-tools
install-tools:
	$(call tool,755,/usr/sbin,arx-link)
	$(call tool,755,/usr/bin,arx-doctor)
	$(call tool,644,/usr/lib/systemd/system,arx-link@.service)
	$(call tool,644,/usr/share/man/man8,arx-link.8)
	$(call tool,644,/usr/share/man/man1,arx-doctor.1)
	$(call tool,644,$(tools_doc)/examples,examples/README examples/interfaces examples/grafana.json)
	$(call tool,755,$(tools_doc)/examples,examples/50-arx.sh examples/90-arx examples/arx-metrics)

uninstall-tools:
	cd "$(or $(DESTDIR),/)" && for file in usr/sbin/arx-link usr/bin/arx-doctor usr/lib/systemd/system/arx-link@.service \
		usr/share/man/man8/arx-link.8 usr/share/man/man1/arx-doctor.1 \
		$(addprefix $(patsubst /%,%,$(tools_doc))/examples/,README interfaces grafana.json 50-arx.sh 90-arx arx-metrics); do \
		rm -f "$$file"; \
		if [ -d "$${file%/*}" ]; then rmdir -p --ignore-fail-on-non-empty "$${file%/*}"; fi; \
	done

# The source of the module alone, for DKMS.
install-source: dir = $(DESTDIR)/usr/src/arx-$(version)
install-source:
	install -d "$(dir)"
	cp -r Kbuild drivers include "$(dir)"
	install -m 644 packaging/dkms.conf "$(dir)"

dist:
	tools/package dist

deb rpm:
	tools/package $@

html:
	tools/package html

applications:
	tools/applications

check-packages: deb
	tools/check-packages

upstream:
	tools/upstream $(if $(filter-out file,$(origin KDIR)),$(KDIR))

uninstall: uninstall-tools
uninstall: updates = lib/modules/$(release_or_error)/updates
uninstall:
	rm -f "$(DESTDIR)/$(updates)/arx.ko"
	cd "$(or $(DESTDIR),/)" && if [ -d $(updates) ]; then rmdir -p --ignore-fail-on-non-empty $(updates); fi
	$(if $(DESTDIR),,depmod $(release))
	tools/provider --uninstall "$(DESTDIR)"

demo:
	tools/build $(KERNEL) provider
	$(vm) -- demo

test:
	tools/test

test-full:
	ARX_FULL=1 tools/test
	$(MAKE) check-packages html upstream arm64

shell:
	tools/build $(KERNEL) provider tests
	tools/vm shell --kernel $(KERNEL) $(if $(SHARE),--share $(SHARE)) -- 'arx-hosts up; exec bash -l'

vm: export ARX_COMMAND = $(value CMD)
vm:
	$(if $(value CMD),,$(error what command? make vm CMD='...'))
	tools/build $(KERNEL) provider tests
	@$(vm) $(if $(SHARE),--share $(SHARE)) -- "$$ARX_COMMAND"

bench bench-network:
	tools/build $(KERNEL) provider tests
	tools/$@

check:
	tools/check

arm64:
	tools/build provider
	tools/$@

help:
	@sed -n 's/^## \{0,1\}//p' $(firstword $(MAKEFILE_LIST))

clean:
	rm -rf build

.PHONY: all module module-locked provider install install-tools install-source uninstall uninstall-tools dist deb rpm html applications \
	check-packages upstream demo test test-full shell vm bench bench-network check arm64 help clean

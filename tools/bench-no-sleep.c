// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Preloaded into perftest's client, which sleeps for a second after it has
 * connected to a listening server, without measuring.
 */

unsigned int sleep(unsigned int seconds);

unsigned int sleep(unsigned int seconds)
{
	(void)seconds;
	return 0;
}

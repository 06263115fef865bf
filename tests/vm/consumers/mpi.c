// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * mpi-mpich, mpi-openmpi [messages|forever]: messages, collectives and
 * one-sided operations of MPI; each rank checks every value that it gets. With
 * "messages" there are no one-sided operations. With "forever" the operations
 * are repeated until the program is killed. Rank 0 prints the number of ranks
 * and the library's version, or the program ends with an error.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST	65536	/* ints of a vector */
#define TURNS	4	/* of a rank at the counter */

static int rank, ranks;

static void check(int good, const char *what, int n)
{
	if (good)
		return;
	fprintf(stderr, "rank %d: %s, size %d: wrong\n", rank, what, n);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The @i-th value that @from has for @to. */
static int value(int from, int to, int i)
{
	return from * 1000003 + to * 7919 + i;
}

/* Each rank sends to the next and receives from the one before. */
static void ring(int *out, int *in, int n)
{
	int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks, i;
	MPI_Status status;

	for (i = 0; i < n; i++)
		out[i] = value(rank, next, i);
	MPI_Sendrecv(out, n, MPI_INT, next, n, in, n, MPI_INT, last, n,
		     MPI_COMM_WORLD, &status);
	for (i = 0; i < n; i++)
		check(in[i] == value(last, rank, i), "sendrecv", n);
}

static void allreduce(int *out, int *in, int n)
{
	int i, r, sum;

	for (i = 0; i < n; i++)
		out[i] = value(rank, 0, i) % 10007;
	MPI_Allreduce(out, in, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (i = 0; i < n; i++) {
		for (r = 0, sum = 0; r < ranks; r++)
			sum += value(r, 0, i) % 10007;
		check(in[i] == sum, "allreduce", n);
	}
}

/* @n values for each rank */
static void alltoall(int *out, int *in, int n)
{
	int i, r;

	for (r = 0; r < ranks; r++)
		for (i = 0; i < n; i++)
			out[r * n + i] = value(rank, r, i);
	MPI_Alltoall(out, n, MPI_INT, in, n, MPI_INT, MPI_COMM_WORLD);
	for (r = 0; r < ranks; r++)
		for (i = 0; i < n; i++)
			check(in[r * n + i] == value(r, rank, i), "alltoall",
			      n);
}

/* Each rank puts into all windows, and reads back what the others put. */
static void put_and_get(MPI_Win win, int *window, int *mine, int *got, int n)
{
	int i, r;

	memset(window, 0, sizeof(int) * n * ranks);
	MPI_Win_fence(0, win);
	for (r = 0; r < ranks; r++) {
		for (i = 0; i < n; i++)
			mine[r * n + i] = value(rank, r, i);
		MPI_Put(mine + r * n, n, MPI_INT, r, rank * n, n, MPI_INT,
			win);
	}
	MPI_Win_fence(0, win);
	for (r = 0; r < ranks; r++)
		for (i = 0; i < n; i++)
			check(window[r * n + i] == value(r, rank, i), "put", n);

	MPI_Win_fence(0, win);
	r = (rank + 1) % ranks;
	MPI_Get(got, n * ranks, MPI_INT, r, 0, n * ranks, MPI_INT, win);
	MPI_Win_fence(0, win);
	for (i = 0; i < n * ranks; i++)
		check(got[i] == value(i / n, r, i % n), "get", n);
	MPI_Win_fence(0, win);
}

/* All ranks add to one counter of rank 0: each number is given once. */
static void counter(MPI_Win win, int *window)
{
	int one = 1, was, sum = 0, all, i;

	window[0] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	MPI_Win_sync(win);
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < TURNS; i++) {
		MPI_Fetch_and_op(&one, &was, MPI_INT, 0, 0, MPI_SUM, win);
		MPI_Win_flush(0, win);
		sum += was;
	}
	MPI_Win_unlock_all(win);
	MPI_Allreduce(&sum, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	check(all == ranks * TURNS * (ranks * TURNS - 1) / 2, "fetch_and_op",
	      1);
}

static void messages(int *a, int *b)
{
	static const int sizes[] = { 1, 1000, MOST };
	unsigned int i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		ring(a, b, sizes[i]);
		allreduce(a, b, sizes[i]);
		alltoall(a, b, (sizes[i] + ranks - 1) / ranks);
	}
}

static void one_sided(int *a, int *b)
{
	MPI_Win win;
	int *window;

	MPI_Win_allocate(MOST * sizeof(int), sizeof(int), MPI_INFO_NULL,
			 MPI_COMM_WORLD, &window, &win);
	put_and_get(win, window, a, b, 1);
	put_and_get(win, window, a, b, MOST / ranks);
	counter(win, window);
	MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
	int *a = malloc(MOST * sizeof(int)), *b = malloc(MOST * sizeof(int));
	int length;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	do {
		messages(a, b);
		if (strcmp(mode, "messages"))
			one_sided(a, b);
	} while (!strcmp(mode, "forever"));
	MPI_Get_library_version(version, &length);
	version[strcspn(version, "\n")] = '\0';
	if (!rank)
		printf("%d ranks, %s\n", ranks, version);
	MPI_Finalize();
	return 0;
}

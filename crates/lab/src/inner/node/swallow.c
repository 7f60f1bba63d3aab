/*
 * Flushes of one kind of file that do nothing, chosen by PGRIG_SWALLOW. Loaded before the C library.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int
is_swallowed(int fd)
{
	const char *kind = getenv("PGRIG_SWALLOW");
	char		link[64];
	char		path[4096];
	struct stat about;
	ssize_t		length;

	if (kind == NULL)
		return 0;
	if (strcmp(kind, "all") == 0)
		return 1;
	if (fstat(fd, &about) != 0)
		return 0;
	if (S_ISDIR(about.st_mode))
		return strcmp(kind, "directory") == 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	if (length < 0)
		return 0;
	path[length] = 0;
	if (strstr(path, "/pg_wal/") != NULL)
		return strcmp(kind, "wal") == 0;
	if (strstr(path, "/global/pg_control") != NULL)
		return strcmp(kind, "control") == 0;
	if (strstr(path, "/pg_xact/") != NULL)
		return strcmp(kind, "commit_log") == 0;
	if (strstr(path, "/base/") != NULL)
		return strcmp(kind, "relation") == 0;
	return 0;
}

int
fsync(int fd)
{
	return is_swallowed(fd) ? 0 : (int) syscall(SYS_fsync, fd);
}

int
fdatasync(int fd)
{
	return is_swallowed(fd) ? 0 : (int) syscall(SYS_fdatasync, fd);
}

int
syncfs(int fd)
{
	return is_swallowed(fd) ? 0 : (int) syscall(SYS_syncfs, fd);
}

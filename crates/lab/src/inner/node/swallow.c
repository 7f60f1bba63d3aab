/*
 * Flushes of one kind of file that do nothing, chosen by PGRIG_SWALLOW. Loaded before the C library. With
 * "all" it answers what libeatmydata answers, in the same way.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int
is_kind(const char *kind)
{
	const char *swallowed = getenv("PGRIG_SWALLOW");

	return swallowed != NULL && strcmp(swallowed, kind) == 0;
}

static int
is_swallowed_path(const char *path)
{
	if (is_kind("all"))
		return 1;
	if (strstr(path, "pg_wal/") != NULL || strstr(path, "/wal/mount/wal/") != NULL)
		return is_kind("wal");
	if (strstr(path, "global/pg_control") != NULL)
		return is_kind("control");
	if (strstr(path, "pg_xact/") != NULL)
		return is_kind("commit_log");
	if (strstr(path, "base/") != NULL)
		return is_kind("relation");
	return 0;
}

static int
is_swallowed(int fd)
{
	char		link[64];
	char		path[4096];
	struct stat about;
	ssize_t		length;

	if (is_kind("all"))
		return 1;
	if (getenv("PGRIG_SWALLOW") == NULL || fstat(fd, &about) != 0)
		return 0;
	if (S_ISDIR(about.st_mode))
		return is_kind("directory");
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	if (length < 0)
		return 0;
	path[length] = 0;
	return is_swallowed_path(path);
}

/* A file that is opened to be flushed with each write. */
static int
open_without_flushes(const char *path, int flags, mode_t mode)
{
	if (is_swallowed_path(path))
		flags &= ~(O_SYNC | O_DSYNC);
	return (int) syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static mode_t
mode_of(int flags, va_list arguments)
{
	/* O_TMPFILE has the bit of O_DIRECTORY as well. */
	if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE)
		return va_arg(arguments, mode_t);
	return 0;
}

int
open(const char *path, int flags,...)
{
	va_list		arguments;
	mode_t		mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return open_without_flushes(path, flags, mode);
}

int
open64(const char *path, int flags,...)
{
	va_list		arguments;
	mode_t		mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return open_without_flushes(path, flags | O_LARGEFILE, mode);
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

void
sync(void)
{
	if (!is_kind("all"))
		syscall(SYS_sync);
}

int
msync(void *address, size_t length, int flags)
{
	return is_kind("all") ? 0 : (int) syscall(SYS_msync, address, length, flags);
}

int
sync_file_range(int fd, off64_t offset, off64_t length, unsigned int flags)
{
	return is_swallowed(fd) ? 0 : (int) syscall(SYS_sync_file_range, fd, offset, length, flags);
}

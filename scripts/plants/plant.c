/*
 * Faults of durability for an exploration to find, chosen by PGRIG_PLANT. Loaded before the C library by the
 * programs that scripts/planted makes. PGRIG_PLANT_FILES names a file with one path of a relation a line, which
 * the study's init.sql writes: NAME PATH.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int
is_plant(const char *name)
{
	const char *plant = getenv("PGRIG_PLANT");

	return plant != NULL && strcmp(plant, name) == 0;
}

static int
path_of(int fd, char *path, size_t size)
{
	char		link[64];
	ssize_t		length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, size - 1);
	if (length < 0)
		return 0;
	path[length] = 0;
	return 1;
}

/* True if the path is one of the relation that the plant names: "relation:docs_toast". */
static int
is_named_relation(const char *path)
{
	const char *plant = getenv("PGRIG_PLANT");
	const char *files = getenv("PGRIG_PLANT_FILES");
	char		line[512];
	int			found = 0;
	FILE	   *file;

	if (plant == NULL || strncmp(plant, "relation:", 9) != 0 || files == NULL)
		return 0;
	file = fopen(files, "r");
	if (file == NULL)
		return 0;
	while (!found && fgets(line, sizeof(line), file) != NULL)
	{
		char	   *space = strpbrk(line, " \t");
		size_t		length;

		if (space == NULL)
			continue;
		*space++ = 0;
		space[strcspn(space, "\r\n")] = 0;
		length = strlen(space);
		if (strcmp(line, plant + 9) == 0 && length > 0)
		{
			const char *at = strstr(path, space);

			found = at != NULL && (at[length] == 0 || at[length] == '.');
		}
	}
	fclose(file);
	return found;
}

static int
is_swallowed(int fd)
{
	static int	count;
	char		path[4096];
	struct stat about;

	if (getenv("PGRIG_PLANT") == NULL || fstat(fd, &about) != 0 || !path_of(fd, path, sizeof(path)))
		return 0;
	if (S_ISDIR(about.st_mode))
		return is_plant("directory");
	if (is_plant("wal") && strstr(path, "pg_wal/"))
		return 1;
	if (is_plant("wal_seventh") && strstr(path, "pg_wal/"))
		return ++count % 7 == 0;
	if (is_plant("control") && strstr(path, "pg_control"))
		return 1;
	if (is_plant("commit_log") && strstr(path, "pg_xact/"))
		return 1;
	if (is_plant("multixact") && strstr(path, "pg_multixact/"))
		return 1;
	if (is_plant("two_phase") && strstr(path, "pg_twophase/"))
		return 1;
	if (is_plant("map") && strstr(path, "pg_filenode.map"))
		return 1;
	if (is_plant("slot") && strstr(path, "pg_replslot/"))
		return 1;
	if (is_plant("all_relations") && strstr(path, "base/"))
		return 1;
	if (is_plant("tablespace") && strstr(path, "pg_tblspc/"))
		return 1;
	if (is_plant("replaced") && strstr(path, "replorigin_checkpoint"))
		return 1;
	if (is_plant("new_names") && strstr(path, ".tmp"))
		return 1;
	return is_named_relation(path);
}

/* A flush that is done later than it is answered. */
static void *
flush_later(void *argument)
{
	int			fd = (int) (long) argument;

	usleep(50000);
	syscall(SYS_fdatasync, fd);
	close(fd);
	return NULL;
}

static int
is_late(int fd)
{
	char		path[4096];
	pthread_t	thread;
	int			copy;

	if (!(is_plant("wal_late") || is_plant("relation_late")) || !path_of(fd, path, sizeof(path)))
		return 0;
	if (strstr(path, is_plant("wal_late") ? "pg_wal/" : "base/") == NULL)
		return 0;
	copy = dup(fd);
	if (copy < 0 || pthread_create(&thread, NULL, flush_later, (void *) (long) copy) != 0)
		return 0;
	pthread_detach(thread);
	return 1;
}

/* A flush that hands the pages to the disk and leaves them in the disk's cache. */
static int
is_only_handed_over(int fd)
{
	char		path[4096];

	return is_plant("handed_over") && path_of(fd, path, sizeof(path)) && strstr(path, "base/") != NULL &&
		sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
						SYNC_FILE_RANGE_WAIT_AFTER) == 0;
}

int
fsync(int fd)
{
	return is_swallowed(fd) || is_late(fd) || is_only_handed_over(fd) ? 0 : (int) syscall(SYS_fsync, fd);
}

int
fdatasync(int fd)
{
	return is_swallowed(fd) || is_late(fd) || is_only_handed_over(fd) ? 0 : (int) syscall(SYS_fdatasync, fd);
}

/*
 * Removes the WAL before the checkpoint that a control file names, while the control file on the disk names the
 * one before. The redo location and its timeline are at bytes 40 and 48 of the control files of PostgreSQL 12 to 18,
 * and a segment has 16 MB.
 */
static void
recycle_early(const char *control)
{
	static uint64_t earlier;
	uint64_t	redo;
	uint32_t	timeline;
	char		first[32];
	DIR		   *wal;
	struct dirent *entry;

	memcpy(&redo, control + 40, sizeof(redo));
	memcpy(&timeline, control + 48, sizeof(timeline));
	if (redo == earlier || (wal = opendir("pg_wal")) == NULL)
		return;
	earlier = redo;
	snprintf(first, sizeof(first), "%08X%08X%08X", timeline, (unsigned) (redo >> 32),
			 (unsigned) ((redo & 0xffffffff) >> 24));
	while ((entry = readdir(wal)) != NULL)
	{
		if (strspn(entry->d_name, "0123456789ABCDEF") == 24 && entry->d_name[24] == 0 &&
			strcmp(entry->d_name, first) < 0)
			unlinkat(dirfd(wal), entry->d_name, 0);
	}
	syscall(SYS_fsync, dirfd(wal));
	closedir(wal);
}

/* A control file that is written in two halves, each of which is flushed, or after what it makes superfluous is gone. */
ssize_t
write(int fd, const void *data, size_t size)
{
	char		path[4096];

	if (is_plant("wal_recycled") && size == 8192 && path_of(fd, path, sizeof(path)) &&
		strstr(path, "global/pg_control"))
		recycle_early(data);
	if (is_plant("control_torn") && size == 8192 && path_of(fd, path, sizeof(path)) &&
		strstr(path, "global/pg_control"))
	{
		ssize_t		half = syscall(SYS_write, fd, data, (size_t) 256);

		if (half != 256)
			return half;
		syscall(SYS_fdatasync, fd);
		return 256 + syscall(SYS_write, fd, (const char *) data + 256, size - 256);
	}
	return syscall(SYS_write, fd, data, size);
}

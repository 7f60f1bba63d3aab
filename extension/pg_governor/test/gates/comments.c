/*
 * comments.c
 *		Tags of comments: a table, tags that are written and found again, and random bytes.
 *
 *	comments [SECONDS [SEED]]		random bytes for so long; without an argument some thousand of them
 *
 * It needs neither a server nor its headers.  Compiled with -DGOVERNOR_LIBFUZZER and -fsanitize=fuzzer it has no main, and
 * is run by libFuzzer.
 */
#include "../../src/comment.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT(table) ((int) (sizeof(table) / sizeof((table)[0])))

#define TEXT_MAX 600

typedef struct TagCase
{
	const char *text;
	const char *value;			/* of the tag "job"; NULL: there is none */
	const char *statement;		/* the text from the statement's location on; NULL: all of it */
	int			length;			/* of the statement; 0: to the end */
} TagCase;

static const TagCase cases[] = {
	/* behind, in front, alone and among others */
	{"SELECT 1", NULL},
	{"SELECT 1 /*job='report'*/", "report"},
	{"SELECT 1 /* job='report' */", "report"},
	{"SELECT 1\n/*\tjob = 'report'\n*/ \n", "report"},
	{"/*job='report'*/ SELECT 1", "report"},
	{" /* why */ -- because\n/*job='report'*/ /*+ big_query */ SELECT 1", "report"},
	{"SELECT 1 /*action='a',job='report',traceparent='00-5bd6-c532-01'*/", "report"},
	{"SELECT 1 /* why */ /*job='report'*/ /* because */", "report"},
	{"/*job='front'*/ SELECT 1 /*job='behind'*/", "behind"},
	{"SELECT 1 /*job='first',job='second'*/", "first"},
	{"SELECT 1 /*job=''*/", ""},
	/* encoded */
	{"SELECT 1 /*job='%2Freports%2F%C3%BC%20x'*/", "/reports/\303\274 x"},
	{"SELECT 1 /*job='a\\'b\\\\c'*/", "a'b\\c"},
	{"SELECT 1 /*%6a%6F%62='report'*/", "report"},
	{"SELECT 1 /*job='a+b c,d=e'*/", "a+b c,d=e"},
	{"SELECT 1 /*job='\303\274'*/", "\303\274"},
	{"SELECT 1 /*job='%27'*/", "'"},
	/* other keys */
	{"SELECT 1 /*jobs='report'*/", NULL},
	{"SELECT 1 /*JOB='report'*/", NULL},
	/* a comment with anything else in it has none */
	{"SELECT 1 /*job='report' please*/", NULL},
	{"SELECT 1 /*please job='report'*/", NULL},
	{"SELECT 1 /*job='report',*/", NULL},
	{"SELECT 1 /*,job='report'*/", NULL},
	{"SELECT 1 /*job='report';a='b'*/", NULL},
	{"SELECT 1 /*job=report*/", NULL},
	{"SELECT 1 /*job='report*/", NULL},
	{"SELECT 1 /*job='report\\'*/", NULL},
	{"SELECT 1 /*job'report'*/", NULL},
	{"SELECT 1 /*='report'*/", NULL},
	{"SELECT 1 /*job='report'='x'*/", NULL},
	{"SELECT 1 /*job='report%'*/", NULL},
	{"SELECT 1 /*job='report%2'*/", NULL},
	{"SELECT 1 /*job='report%zz'*/", NULL},
	{"SELECT 1 /*job='report',a='%'*/", NULL},
	{"SELECT 1 /*job='report\\*/", NULL},
	{"SELECT 1 /*job\\*/", NULL},
	{"SELECT 1 /**/", NULL},
	{"SELECT 1 /*/", NULL},
	{"SELECT 1 */", NULL},
	{"*/", NULL},
	{"/*", NULL},
	{"/*job='report'", NULL},
	{"", NULL},
	/* a zero byte is in no value */
	{"SELECT 1 /*job='%00'*/", NULL},
	/* neither in a comment inside of another one, nor in one that goes to the end of its line, nor in a literal */
	{"SELECT 1 /* a /*job='report'*/ b */", NULL},
	{"SELECT 1 /*a='b'/*job='report'*/*/", NULL},
	{"SELECT 1 -- job='report'", NULL},
	{"SELECT '/*job=''report''*/'", NULL},
	{"SELECT /*job='report'*/ 1", NULL},
	/* of this statement of several */
	{"SELECT 1 /*job='one'*/; SELECT 2 /*job='two'*/", "two", "SELECT 2 /*job='two'*/"},
	{"SELECT 1 /*job='one'*/; SELECT 2", NULL, "SELECT 2"},
	{"SELECT 1 /*job='one'*/; SELECT 2", NULL, " SELECT 2"},
	{"SELECT 1 /*job='one'*/; SELECT 2", "one", NULL, 22},
	{"SELECT 1; /*job='two'*/ SELECT 2", "two", " /*job='two'*/ SELECT 2"},
	{"SELECT 1; /*job='two'*/ SELECT 2", "two", "SELECT 2"},
	{"SELECT 1; /*job='two'*/ SELECT 2", NULL, NULL, 8},
	{"SELECT 1 /*job='one'*/ ;", "one", NULL, 23},
	{"SELECT 1; /*job='after'*/", NULL, NULL, 8},
};

/* What the parser looks for, so that random bytes come to its depths. */
static const char *const words[] = {
	"/*", "*/", "--", "\n", "'", "\\", "%", "=", ",", " ", ";", "/", "*", "%2F", "%00", "job", "job='report'", "\\'", "/*job='a'*/", "\303"
};

static uint64_t state = 1;

static uint32_t
random_below(uint32_t below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t) ((state >> 33) % below);
}

static void
stop(const char *why, const char *text)
{
	printf("%s: %s\n", why, text);
	abort();
}

/* Memory of just this size, so that one byte beyond it is seen. */
static char *
exactly(const char *text, size_t length)
{
	char	   *copy = malloc(length + 1);

	memcpy(copy, text, length);
	copy[length] = '\0';
	return copy;
}

static int
check_cases(void)
{
	int			failed = 0;

	for (int i = 0; i < COUNT(cases); i++)
	{
		const TagCase *one = &cases[i];
		char	   *text = exactly(one->text, strlen(one->text));
		const char *begin = text + (one->statement == NULL ? 0 : strlen(text) - strlen(one->statement));
		GovernorSpan statement = {begin, one->length > 0 ? begin + one->length : begin + strlen(begin)};
		GovernorTag tags[GOVERNOR_TAGS_MAX];
		int			count = governor_comment_tags(text, statement, tags, GOVERNOR_TAGS_MAX);
		const GovernorTag *tag = governor_tag_find(tags, count, "job");
		int			zero = tag != NULL && strstr(text, "%00") != NULL;

		if (zero ? governor_tag_part_is(tag->value, "") :
			(tag != NULL) != (one->value != NULL) || (tag != NULL && !governor_tag_part_is(tag->value, one->value)))
		{
			printf("tags of \"%s\": expected %s\n", one->text, one->value == NULL ? "none" : one->value);
			failed++;
		}
		free(text);
	}
	return failed;
}

/* A megabyte of comments takes no time, and what is next to the statement is found. */
static int
check_long(void)
{
	enum
	{
		SIZE = 1000000
	};
	char	   *text = malloc(3 * SIZE);
	char	   *begin = text + SIZE;
	GovernorTag tags[GOVERNOR_TAGS_MAX];
	int			found;

	memset(text, ' ', 3 * SIZE);
	for (char *at = text; at < text + SIZE - 20; at += 4)
		memcpy(at, "/**/", 4);
	memcpy(begin - 20, "/*job='front'*/     ", 20);
	memcpy(begin, "SELECT 1", 8);
	for (char *at = begin + 8; at < begin + SIZE; at += 4)
		memcpy(at, "/**/", 4);
	text[2 * SIZE + 8] = '\0';
	found = governor_comment_tags(text, (GovernorSpan) {begin, begin + strlen(begin)}, tags, GOVERNOR_TAGS_MAX);
	found = found == 1 && governor_tag_part_is(tags[0].value, "front");
	free(text);
	if (!found)
		printf("tags among two megabytes of comments: not found\n");
	return !found;
}

/* Whatever the bytes are: tags are in the text, in a comment of their own, and no more than there is room for. */
static void
check_bytes(const uint8_t *bytes, size_t size)
{
	char	   *text = exactly((const char *) bytes, size);
	size_t		length = strlen(text);
	size_t		from = size > 0 ? bytes[0] % (length + 1) : 0;
	size_t		to = from + (size > 1 && bytes[1] % 4 == 0 ? bytes[1] % (length - from + 1) : length - from);
	int			room = size > 2 ? bytes[2] % 8 : 4;
	GovernorTag *tags = malloc(room * sizeof(GovernorTag) + 1);
	int			count = governor_comment_tags(text, (GovernorSpan) {text + from, text + to}, tags, room);

	if (count > room)
		stop("more than there is room for", text);
	for (int i = 0; i < count; i++)
	{
		const char *begin = tags[i].key.begin;
		char		plain[4] = "";

		if (begin < text + 2 || tags[i].key.end <= begin || tags[i].value.begin <= tags[i].key.end ||
			tags[i].value.end < tags[i].value.begin || *tags[i].value.end != '\'' || tags[i].value.end + 2 > text + length)
			stop("not in the text", text);
		while (begin > text + 1 && !(begin[-2] == '/' && begin[-1] == '*'))
			if (--begin < text + 2 || (begin[0] == '*' && begin[1] == '/'))
				stop("not in a comment", text);
		(void) governor_tag_part_is(tags[i].value, plain);
		(void) governor_tag_part_is(tags[i].key, "job");
	}
	(void) governor_tag_find(tags, count, "report");
	free(tags);
	free(text);
}

/* As SQLCommenter says: URL-encoded, and then with a backslash before quotes. */
static void
append_encoded(char *into, const char *plain)
{
	for (; *plain != '\0'; plain++)
	{
		unsigned char c = *plain;
		int			plainly = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '(' || c == '!';

		if (c == '\'')
			strcat(into, "\\'");
		else
			sprintf(into + strlen(into), plainly ? "%c" : random_below(2) ? "%%%02X" : "%%%02x", c);
	}
}

/* What is written is found, and nothing else is. */
static void
check_written(void)
{
	char		key[16] = "";
	char		value[40] = "";
	char		other[48];
	char		text[TEXT_MAX] = "";
	GovernorTag tags[GOVERNOR_TAGS_MAX];
	const GovernorTag *tag;
	char	   *copy;
	const char *begin;
	int			count;
	int			in_front = random_below(2);

	for (int i = random_below(14) + 1; i > 0; i--)
		key[i - 1] = (char) (random_below(255) + 1);
	for (int i = random_below(39); i > 0; i--)
		value[i - 1] = (char) (random_below(255) + 1);
	if (!in_front)
		strcat(text, "SELECT 1 ");
	strcat(text, random_below(2) ? "/*" : "/* a='b', ");
	append_encoded(text, key);
	strcat(text, "='");
	append_encoded(text, value);
	strcat(text, random_below(2) ? "'*/" : "', zz='c' */ ");
	if (in_front)
		strcat(text, "SELECT 1 /* why */");
	copy = exactly(text, strlen(text));
	begin = in_front && random_below(2) ? strstr(copy, "SELECT") : copy;
	count = governor_comment_tags(copy, (GovernorSpan) {begin, copy + strlen(copy)}, tags, GOVERNOR_TAGS_MAX);
	tag = governor_tag_find(tags, count, key);
	snprintf(other, sizeof(other), "%sx", value);
	if (strcmp(key, "a") != 0 && (tag == NULL || !governor_tag_part_is(tag->value, value) || governor_tag_part_is(tag->value, other) ||
								  (value[0] != '\0' && governor_tag_part_is(tag->value, value + 1))))
		stop("what was written is not found", text);
	free(copy);
}

#ifdef GOVERNOR_LIBFUZZER
int			LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	check_bytes(bytes, size);
	return 0;
}
#else
/* A case of the table, or words, with some changes. */
static size_t
make_bytes(uint8_t *bytes)
{
	size_t		length = 0;

	if (random_below(2))
	{
		const char *text = cases[random_below(COUNT(cases))].text;

		length = strlen(text);
		memcpy(bytes, text, length);
	}
	for (int changes = random_below(12); changes > 0; changes--)
	{
		const char *word = words[random_below(COUNT(words))];
		size_t		size = strlen(word);
		size_t		at = random_below((uint32_t) length + 1);
		size_t		cut;

		switch (random_below(3))
		{
			case 0:
				if (length + size > TEXT_MAX)
					break;
				memmove(bytes + at + size, bytes + at, length - at);
				memcpy(bytes + at, word, size);
				length += size;
				break;
			case 1:
				if (at < length)
					bytes[at] = (uint8_t) random_below(256);
				break;
			default:
				cut = random_below(4);
				if (cut > length - at)
					cut = length - at;
				memmove(bytes + at, bytes + at + cut, length - at - cut);
				length -= cut;
				break;
		}
	}
	return length;
}

int
main(int argc, char **argv)
{
	time_t		until = time(NULL) + (argc > 1 ? atoi(argv[1]) : 0);
	int			failed = check_cases() + check_long();
	long		rounds = 0;

	state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	do
	{
		for (int i = 0; i < 50000; i++, rounds++)
		{
			uint8_t		bytes[TEXT_MAX + 16];

			check_bytes(bytes, make_bytes(bytes));
			check_written();
		}
	} while (time(NULL) < until);
	printf("%d cases of tags: %d failed; %ld random texts and as many written tags\n", COUNT(cases), failed, rounds);
	return failed;
}
#endif

# What test/run says of the logs of TAP tests: each failure is named in the last lines, whatever it is.
use strict;
use warnings FATAL => 'all';
use FindBin;
use PostgreSQL::Test::Utils;
use Test::More;

my $place = PostgreSQL::Test::Utils::tempdir();

# The lines that name what failed in one log.
sub check
{
	my ($what, $log, $expected) = @_;
	my $file = "$place/regress_log_001_some";

	unlink $file;
	append_to_file($file, $log);
	my $said = `'$FindBin::RealBin/../failures' '$file'`;
	my $failed = $? != 0;
	is(join('', grep { /^FAILED/ } split /^/, $said), join('', map { "FAILED: test/t/001_some.pl: $_\n" } @$expected), $what);
	is($failed, @$expected > 0, "$what: the exit code");
}

my $no = 'not ok';
my $looks = '# Looks like';
check('all passed', "ok 1 - a\nok 2 - b\n1..2\n", []);
check('all passed, with times', "[12:00:00.123](0.456s) ok 1 - a\n[12:00:00.124](0.001s) 1..1\n", []);
check('all skipped', "1..0 # SKIP no library\n", []);
check('one failed', "ok 1 - a\n$no 2 - b\n#   Failed test\nok 3 - c\n1..3\n$looks you failed 1 test of 3.\n", ["$no 2 - b"]);
check('one failed, with times', "[12:00:00.123](0.456s) $no 1 - a\n[12:00:00.124](0.001s) 1..1\n", ["$no 1 - a"]);
check('one failed in a log with other bytes', "\0\377\nok 1 - a\n$no 2 - b\n1..2\n", ["$no 2 - b"]);
check('a death', "ok 1 - a\n# Tests were run but no plan was declared and done_testing() was not seen.\n", ['died after ok 1 - a']);
check('a death, with times', "[12:00:00.123](0.456s) ok 1 - a\nsomething at t line 2.\n", ['died after ok 1 - a']);
check('a death before the first test', "could not start at t line 2.\n", ['died after no test at all']);
check('a death after the plan', "ok 1 - a\n1..1\n$looks your test exited with 29 just after 1.\n", ['died after ok 1 - a']);
check('fewer than planned', "1..3\nok 1 - a\n", ['died after ok 1 - a']);
done_testing();

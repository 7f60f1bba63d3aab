# Random schedules of pauses, chains, cancels, freezes, reloads and promotions: nobody works beyond what the settings say.
# SCHEDULES says how many (20 without it), SEED the first one's.  Run by "test/run schedules SCHEDULES=1000".
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib "$FindBin::RealBin/t";
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $schedules = $ENV{SCHEDULES} || 20;
my $seed = $ENV{SEED} || time % 1_000_000;
my $driver = "$FindBin::RealBin/load/schedules";
plan skip_all => 'the driver is not built (it needs libpq)' unless -x $driver;

my $node = governed_node('schedules', <<'EOC', allows_streaming => 1);
pg_governor.transaction_limit = 2
pg_governor.strict = on
pg_governor.queue_timeout = 0
EOC
$node->safe_psql('postgres', 'CREATE ROLE plain LOGIN');
my $superuser = $node->safe_psql('postgres', 'SELECT current_user');

# Of four in a row the first is on a standby, which may be promoted: its WAL is its own.
for (my $done = 0; $done < $schedules; $done += 4)
{
	$node->stop;
	append_to_file($node->data_dir . '/standby.signal', '');
	$node->start;
	wait_for_monitor($node);
	for my $run ([ 1, 'a standby' ], [ 3, 'a primary' ])
	{
		my ($count, $what) = @$run;
		# what SQL promotes ends as a primary; otherwise it is promoted here
		$node->promote if $what eq 'a primary' && $node->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 't';
		command_ok([ $driver, $node->connstr('postgres'), $count, $seed + $done + ($what eq 'a primary'), $superuser ],
			"$count on $what from seed " . ($seed + $done + ($what eq 'a primary')));
	}
	nothing_left($node, 'after ' . ($done + 4));
}
$node->stop;
done_testing();

#!/usr/bin/perl
# A FastCGI application that tells about its own process. What the path says, it does.
use strict;
use warnings;
use FCGI;

print STDERR "begins with @ARGV\n";
my %environment = %ENV;
my $self = $$;
my $keeper = fork;
if ($keeper == 0) { sleep 20 while getppid() == $self; exit }
$SIG{TERM} = 'IGNORE' if grep { $_ eq 'stubborn' } @ARGV;
my $request = FCGI::Request();
while ($request->Accept() >= 0) {
    my $path = $request->GetEnvironment()->{REQUEST_URI};
    kill KILL => $$ if $path =~ /die/;
    sleep 1000 if $path =~ /hang/;
    my $text = "pid=$$ child=$keeper uid=$< args=@ARGV cwd=" . readlink('/proc/self/cwd') . "\n";
    my @sockets = grep { (readlink($_) // '') =~ /^socket/ } glob '/proc/self/fd/*';
    $text .= 'sockets=' . @sockets . "\n";
    $text = join '', map { "$_=$environment{$_}\n" } sort keys %environment if $path =~ /environment/;
    print "Content-Type: text/plain\r\n\r\n$text";
}

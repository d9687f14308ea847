#!/usr/bin/perl
# A typical FastCGI application in Perl; the path selects its behaviour.
use strict;
use warnings;
use FCGI;

my %environment;
my $request = FCGI::Request(\*STDIN, \*STDOUT, \*STDERR, \%environment);
while ($request->Accept() >= 0) {
    my ($path) = $environment{REQUEST_URI} =~ m{^/(?:program/)?([a-z]*)};
    my $size = $environment{QUERY_STRING} =~ /^\d+$/ ? $environment{QUERY_STRING} : 0;
    if ($path eq 'variables') {
        print "Content-Type: text/plain\r\n\r\n", map { "$_=$environment{$_}\n" } sort keys %environment;
    } elsif ($path eq 'echo') {
        my ($body, $piece) = ('');
        $body .= $piece while read STDIN, $piece, 10_000;
        print "Content-Type: application/octet-stream\r\nContent-Length: ", length $body, "\r\n\r\n", $body;
    } elsif ($path eq 'bytes') {
        print "Content-Type: application/octet-stream\r\n\r\n";
        print pack('N', $_), '-' x 60 for 1 .. $size / 64;
    } elsif ($path eq 'once') {
        print "Content-Type: text/plain\r\nContent-Length: $size\r\n\r\n", 'x' x $size;
    } elsif ($path eq 'cookies') {
        print "Set-Cookie: a=1; Path=/\r\nSet-Cookie: b=2\r\nX-Own: yes\r\nContent-Type: text/plain\r\n\r\nbaked\n";
    } elsif ($path eq 'elsewhere') {
        print "Status: 303 See Other\r\nLocation: /variables\r\n\r\n";
    } elsif ($path eq 'nothing') {
        print "Status: 204 No Content\r\n\r\n";
    } elsif ($path eq 'holds') {
        print "Content-Type: text/plain\r\n\r\n", map { (readlink // '') . "\n" } glob '/proc/self/fd/*';
        open my $maps, '<', '/proc/self/maps' or die;
        print while <$maps>;
    } else {
        print STDERR "no $path\n";
        print "Status: 404 Not Found\r\nContent-Type: text/plain\r\n\r\nno $path\n";
    }
}

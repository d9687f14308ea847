# Varnish in front of an origin.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "@ORIGIN@";
}

sub vcl_recv {
    if (req.url ~ "^/pass/") {
        set req.url = regsub(req.url, "^/pass/", "/");
        return (pass);
    }
    set req.url = regsub(req.url, "^/hit/", "/");
    return (hash);
}

sub vcl_backend_response {
    set beresp.ttl = 1h;
}

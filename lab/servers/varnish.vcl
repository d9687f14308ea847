# Varnish as its experts set it up for throughput; its bounds stand on its command line.
vcl 4.1;

{% if "nodes" in needs %}
import directors;

{% for origin in origins %}
backend node{{ loop.index }} { .host = "{{ origin | split(":") | first }}"; .port = "{{ origin | split(":") | last }}"; }
{% endfor %}

sub vcl_init {
    # Each URL has its node.
    new nodes = directors.shard();
{% for origin in origins %}
    nodes.add_backend(node{{ loop.index }});
{% endfor %}
    nodes.reconfigure();
}

sub vcl_recv {
    set req.backend_hint = nodes.backend(by=URL);
    return ({{ "hash" if "cache" in needs else "pass" }});
}

sub vcl_backend_response { set beresp.ttl = 1h; }
{% else %}
backend default { .host = "{{ origins[0] | split(":") | first }}"; .port = "{{ origins[0] | split(":") | last }}"; }

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
{% if "compression" in needs %}
    # Once for all clients, when it comes; unpacked for those that cannot.
    if (beresp.http.content-type ~ "^text/") { set beresp.do_gzip = true; }
{% endif %}
}
{% endif %}

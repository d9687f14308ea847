// An origin that sends back what it gets, as it comes, and says in a trailer how much that was.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, http.HandlerFunc(echo)))
}

func echo(out http.ResponseWriter, in *http.Request) {
	if in.URL.Path == "/hints" {
		out.Header().Set("Link", "</a.css>; rel=preload")
		out.WriteHeader(http.StatusEarlyHints)
	}
	out.Header().Set("Trailer", "X-Count")
	// Otherwise the rest of the body is read before the first byte is written.
	if err := http.NewResponseController(out).EnableFullDuplex(); err != nil {
		panic(err)
	}
	count, _ := io.Copy(out, in.Body)
	out.Header().Set("X-Count", fmt.Sprint(count))
}

#!/bin/sh
printf 'Location: /elsewhere?x\n\n'
echo $GATEWAY_INTERFACE $PATH_INFO; cat

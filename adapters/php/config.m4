PHP_ARG_ENABLE([baton],
  [whether to enable files as strings that Baton sends],
  [AS_HELP_STRING([--enable-baton], [Enable files as strings that Baton sends])],
  [yes])

if test "$PHP_BATON" != "no"; then
  AC_CHECK_HEADERS([linux/fs.h linux/magic.h], [],
    [AC_MSG_ERROR([baton needs the headers of the Linux kernel (package linux-libc-dev)])])

  PHP_NEW_EXTENSION([baton],
    [src/baton.c src/report.c src/version.c src/store.c src/snapshot.c src/file_string.c src/find.c src/shelf.c src/response.c src/functions.c src/include.c],
    [$ext_shared],, [-Wall -Wextra -Wno-unused-parameter -DZEND_ENABLE_STATIC_TSRMLS_CACHE=1])
  PHP_ADD_BUILD_DIR([$ext_builddir/src])
fi

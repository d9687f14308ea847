/* What baton.stub.php says, for the compiler. */
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_baton_status, 0, 0, IS_ARRAY, 0)
ZEND_END_ARG_INFO()

"""Tables as papers print them: layouts as data, methods from files, published rows beside them."""

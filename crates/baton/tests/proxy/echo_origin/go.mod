module echo-origin

go 1.21

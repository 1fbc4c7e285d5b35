package main

// #cgo CFLAGS: -include /etc/shadow
// #include "/etc/shadow"
import "C"

func main() { println("ESC" + "APED cgo compiled the file") }

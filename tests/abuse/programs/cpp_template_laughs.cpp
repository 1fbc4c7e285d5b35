template <int N, class T> struct Grow { typedef typename Grow<N - 1, Grow<N - 1, T>>::type type; };
template <class T> struct Grow<0, T> { typedef T type; };
int main() { Grow<40, int>::type answer; return sizeof answer; }

public class Main {
    public static void main(String[] words) throws Exception {
        int made = 0;
        try {
            for (; made < 100000; made++) {
                Thread thread = new Thread(() -> { try { Thread.sleep(60000); } catch (InterruptedException gone) { } });
                thread.setDaemon(true);
                thread.start();
            }
        } catch (Throwable error) {
            System.out.println(made + " " + error);
        }
        Runtime.getRuntime().halt(3);
    }
}

// SPDX-License-Identifier: MIT

import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.testng.IConfigurationListener;
import org.testng.ITestListener;
import org.testng.ITestNGMethod;
import org.testng.ITestResult;
import org.testng.SkipException;

/**
 * Writes down what each invocation of a test came to: a line of fields between tabs. A setup or
 * cleanup that fails is one of them.
 */
public final class Outcomes implements ITestListener, IConfigurationListener {
  private static final int LONGEST_MESSAGE = 2000;

  private final PrintWriter results;

  public Outcomes() throws Exception {
    results = new PrintWriter(Files.newBufferedWriter(Path.of(System.getProperty("mayfly.results"))), true);
  }

  @Override
  public void onTestSuccess(ITestResult r) {
    write("passed", r);
  }

  @Override
  public void onTestFailure(ITestResult r) {
    write(outcome(r), r);
  }

  @Override
  public void onTestFailedWithTimeout(ITestResult r) {
    onTestFailure(r);
  }

  /** A test that a failed setup kept from running has failed. One that is tried again is written then. */
  @Override
  public void onTestSkipped(ITestResult r) {
    if (!r.wasRetried()) {
      write(outcome(r), r);
    }
  }

  @Override
  public void onConfigurationFailure(ITestResult r) {
    write("failed", r);
  }

  private static String outcome(ITestResult r) {
    for (Throwable t = r.getThrowable(); t != null; t = t.getCause()) {
      if (t instanceof SkipException) {
        return "the test says so";
      }
    }
    return "failed";
  }

  private void write(String what, ITestResult r) {
    write(what, r.getMethod(), r.getThrowable() + " " + Arrays.toString(r.getParameters()));
  }

  private synchronized void write(String what, ITestNGMethod m, String message) {
    String file = m.getRealClass().getName().replace("com.azure.cosmos.", "").replace('.', '/') + ".java";
    results.println(String.join("\t", what, file, m.getMethodName(), line(message)));
  }

  private static String line(String s) {
    String one = s.replaceAll("\\s+", " ");
    return one.substring(0, Math.min(one.length(), LONGEST_MESSAGE));
  }
}

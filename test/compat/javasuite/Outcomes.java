// SPDX-License-Identifier: MIT

import com.azure.cosmos.ConnectionMode;
import com.azure.cosmos.CosmosAsyncClientTest;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.implementation.AsyncDocumentClient;
import com.azure.cosmos.implementation.ImplementationBridgeHelpers;
import com.azure.cosmos.rx.TestSuiteBase;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.regex.Pattern;
import org.testng.IConfigurationListener;
import org.testng.IDataProviderInterceptor;
import org.testng.IDataProviderMethod;
import org.testng.IMethodInstance;
import org.testng.IMethodInterceptor;
import org.testng.ITestContext;
import org.testng.ITestListener;
import org.testng.ITestNGMethod;
import org.testng.ITestResult;
import org.testng.SkipException;

/**
 * Leaves out what is run with a client in direct mode, and writes down what the rest came to: a
 * line for each invocation, of fields between tabs. A setup or cleanup that fails is one of them.
 * Some tests make a client in direct mode themselves, or need one: they are left out when they
 * fail for that.
 */
public final class Gateway implements IMethodInterceptor, IDataProviderInterceptor, ITestListener, IConfigurationListener {
  private static final String DIRECT = "direct mode";
  /** What the server says to a client in direct mode, and the SDK of faults that are to be injected there. */
  private static final Pattern NEEDS_DIRECT = Pattern.compile("Direct mode is not served|Direct connection type rule is not supported");

  private static final int LONGEST_MESSAGE = 2000;

  private final PrintWriter results;

  public Gateway() throws Exception {
    results = new PrintWriter(Files.newBufferedWriter(Path.of(System.getProperty("mayfly.results"))), true);
  }

  @Override
  public List<IMethodInstance> intercept(List<IMethodInstance> methods, ITestContext context) {
    List<IMethodInstance> kept = new ArrayList<>();
    for (IMethodInstance m : methods) {
      if (given(m.getInstance()) && direct(m.getInstance())) {
        write(DIRECT, m.getMethod(), "");
      } else {
        kept.add(m);
      }
    }
    return kept;
  }

  @Override
  public Iterator<Object[]> intercept(
      Iterator<Object[]> rows, IDataProviderMethod provider, ITestNGMethod method, ITestContext context) {
    List<Object[]> kept = new ArrayList<>();
    rows.forEachRemaining(
        row -> {
          // The rows of a factory become instances, of which some are left out above.
          if (method.isTest() && Arrays.stream(row).anyMatch(Gateway::direct)) {
            write(DIRECT, method, "");
          } else {
            kept.add(row);
          }
        });
    return kept.iterator();
  }

  /** Says whether a factory made the test, with a client: others have one that they do not use. */
  private static boolean given(Object test) {
    return Arrays.stream(test.getClass().getConstructors()).noneMatch(c -> c.getParameterCount() == 0);
  }

  /** Says whether it is a client in direct mode, or a test that has one. */
  private static boolean direct(Object o) {
    if (o instanceof TestSuiteBase t && t.clientBuilder() != null) {
      return direct(t.clientBuilder());
    }
    if (o instanceof CosmosAsyncClientTest t && t.getClientBuilder() != null) {
      return direct(t.getClientBuilder());
    }
    if (o instanceof AsyncDocumentClient.Builder b) {
      return b.getConnectionPolicy() != null && direct(b.getConnectionPolicy().getConnectionMode());
    }
    if (o instanceof CosmosClientBuilder b) {
      var builders = ImplementationBridgeHelpers.CosmosClientBuilderHelper.getCosmosClientBuilderAccessor();
      builders.buildConnectionPolicy(b);
      return direct(builders.getConnectionPolicy(b).getConnectionMode());
    }
    return o == ConnectionMode.DIRECT;
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
      if (NEEDS_DIRECT.matcher(String.valueOf(t)).find()) {
        return DIRECT;
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
